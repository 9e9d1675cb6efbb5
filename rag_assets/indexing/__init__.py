"""Passages of agents' documentation, and stores of them that need no server.

Belongs here: the protocol of such stores, stores in memory, in files and in SQLite, and exact
search. Does not: which files are indexed and when (agents), Elasticsearch's generations (storage).
"""
