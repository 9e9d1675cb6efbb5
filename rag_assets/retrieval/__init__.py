"""Questions → passages, by whoever may read them.

Belongs here: search, fusion, verification against the catalog, what a hit is. Does not: how the
index is built (stages), doors such as HTTP or the command line.
May import: errors, catalog, embedding, indexing, tenants.
"""
