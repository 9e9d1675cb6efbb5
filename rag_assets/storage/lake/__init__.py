"""The lake: computed results, stored under the hash of all inputs that determine them.

Belongs here: the Delta tables of a tenant (parsed_text, chunks, embeddings), appending to them,
reading by key, compaction, purging. Does not belong here: how a key is computed, which keys are
needed, locking (the caller holds the tenant's lock).

`store` and `model` are cheap to import. `rows`, `table` and `files` load Polars; `store` imports
them when a table is used.
"""
