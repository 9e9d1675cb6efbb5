"""The work of the commands, one module for each group.

Belongs here: reading arguments, calling the core, printing for people or as JSON. Does not: any
decision about documents.
"""
