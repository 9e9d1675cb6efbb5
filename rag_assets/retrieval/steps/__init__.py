"""The built-in steps of a search, each in a module of its own, and how lists of them are composed.

Belongs here: what happens between a resolved request and its hits. Does not: the request itself,
journaling, and interfaces.
"""
