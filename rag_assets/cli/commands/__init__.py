"""The work of the commands, one module for each group.

What belongs here: reading arguments, calling the core, printing for people or as JSON. What does
not: any decision about documents.
"""
