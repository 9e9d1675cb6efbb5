"""Languages whose files consist of definitions: the part that their grammars have in common.

Belongs here: the walk that finds definitions, their units and facts, and the resolution of method
calls. Does not belong here: the node names of one grammar, which are in its language's module.
"""
