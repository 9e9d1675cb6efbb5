"""The search index: entries made of chunks and vectors, and the searches that find them.

Belongs here: the three protocols of a vector store, the fields of an entry, the adapters for
Elasticsearch and for memory. Does not belong here: which documents are due (pipeline), what a
caller may read (retrieval).
"""
