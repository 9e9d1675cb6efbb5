"""rag-assets: folders and documents into tenant-isolated Elasticsearch kNN indexes.

Each package holds one concept of the chain and its docstring defines what belongs there and
what it may import. Nothing happens at import.
"""
