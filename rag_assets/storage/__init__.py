"""Persistent data: the catalog in Postgres, the lake in Delta tables, the search index.

Belongs here: schemas, queries and adapters. Does not belong here: decisions about documents (they
belong to the pipeline).
"""
