"""Persistent data: the catalog in Postgres, the lake in Delta tables, the search index.

What belongs here: schemas, queries and adapters. Elsewhere: decisions about documents (pipeline).
"""
