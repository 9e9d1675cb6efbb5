"""Persistent data: the catalog in Postgres, the lake in Delta tables, the search index.

Belongs here: schemas, queries and adapters. Does not: decisions about documents (pipeline).
"""
