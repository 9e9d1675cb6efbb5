"""Languages: read the units and facts of one file from its syntax tree.

Belongs here: one module, or package, for each grammar. Does not belong here: the meaning of calls
in a framework (frameworks), and anything that other files decide (relations).
"""
