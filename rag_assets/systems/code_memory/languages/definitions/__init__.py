"""Definitions in languages with files that consist of definitions: the common part of the grammars.

Belongs here: the walk that finds definitions, their units and facts, and the resolution of method
calls. Does not: the node names of one grammar, which belong in its language's module.
"""
