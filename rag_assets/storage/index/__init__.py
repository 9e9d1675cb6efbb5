"""Chunks and vectors → entries of an index, and back as scored candidates.

Belongs here: the VectorStore protocol, entries, the Elasticsearch mapping and store.
Does not: which documents are due (stages), what a caller may see (retrieval).
"""
