"""The search index in Elasticsearch's core server; no module or licence beyond it is used.

Belongs here: what only Elasticsearch knows: aliases, UUIDs, refreshes, routing, its JSON.
Does not: what an entry holds (`rag_assets.storage.index.fields`).
"""
