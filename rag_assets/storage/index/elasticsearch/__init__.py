"""The adapter for Elasticsearch; it needs only the core server, without modules or a licence.

What belongs here: everything specific to Elasticsearch: aliases, UUIDs, refreshes, routing, its
JSON. Elsewhere: the fields of an entry (`rag_assets.storage.index.fields`).
"""
