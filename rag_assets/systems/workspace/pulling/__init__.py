"""Sources of the type `sql`: records of a workspace, pulled from its application's database.

Belongs here: reading another database, from rows to records, and how far each query was followed.
Pulled records are stored like pushed records, so that everything else is the same for both. Does
not: the jobs and sensors that start a pull (definitions.py).
"""
