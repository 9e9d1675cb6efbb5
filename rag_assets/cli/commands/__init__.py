"""What the command line does, one module per group of commands.

Belongs here: reading arguments, calling the core, printing for people or as JSON. Does not: any
decision about documents.
"""
