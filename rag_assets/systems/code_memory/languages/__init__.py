"""Languages: readers of the units and facts of one file.

Belongs here: one module or package for each grammar. Does not belong here: the meaning of calls in
a framework (frameworks), and names that depend on other files (relations).
"""
