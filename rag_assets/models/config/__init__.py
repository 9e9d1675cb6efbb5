"""The configuration of a tenant's embedder, chat model and reranker, by what providers offer."""
