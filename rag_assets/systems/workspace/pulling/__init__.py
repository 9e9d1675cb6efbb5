"""Sources of the type `sql`: records of a workspace, pulled from its application's database.

Belongs here: reading another database, from rows to records, and how far each query was followed.
What is pulled is stored as pushed records are, so that all else is the same for both. Does not:
what starts it (definitions.py).
"""
