"""Dagster's webserver with additional pages: documents, and Great Expectations' data docs.

What belongs here: read-only pages that Dagster's metadata links to. What does not: anything that
changes state or answers questions.
"""
