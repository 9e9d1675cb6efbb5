"""Languages: from the text of one file to its units and facts, by its syntax tree.

Belongs here: one module, or package, for each grammar. Does not: what a framework makes of a
language's calls (frameworks), and anything that other files decide (relations).
"""
