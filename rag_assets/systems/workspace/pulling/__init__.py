"""Sources of the type `sql`: records of a workspace, pulled from its application's database.

What belongs here: reading another database, converting rows to records, and recording how far each
query was followed. Pulled records are stored like pushed records, so that everything else is the
same for both. What does not: the jobs and sensors that start a pull (see definitions.py).
"""
