"""The adapter for Elasticsearch; it needs only the core server, without modules or a licence.

Belongs here: everything specific to Elasticsearch: aliases, UUIDs, refreshes, routing, its JSON.
Does not belong here: the fields of an entry (`rag_assets.storage.index.fields`).
"""
