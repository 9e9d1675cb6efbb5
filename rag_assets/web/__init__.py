"""Dagster's webserver with pages of our own: documents, and data docs.

Belongs here: read-only pages that Dagster's metadata links to, so that they need no port or process
of their own. Does not: anything that changes state, or that answers questions.
"""
