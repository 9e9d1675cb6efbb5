"""Definitions of languages whose files are lists of them: what is alike in all these grammars.

Belongs here: the walk that finds definitions, the units and facts that are made of them, and whose
method a call calls. Does not: what one grammar calls its nodes, which is its language's module.
"""
