"""The built-in steps of a search, each in a separate module, and the composition of step lists.

Belongs here: everything between a resolved request and its hits. Does not belong here: the request
itself, journaling, and interfaces.
"""
