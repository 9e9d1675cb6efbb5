"""Dagster's webserver with additional pages: documents, and Great Expectations' data docs.

What belongs here: read-only pages that Dagster's metadata links to. Served here, they need no port
or process of their own. What does not: anything that changes state or answers questions.
"""
