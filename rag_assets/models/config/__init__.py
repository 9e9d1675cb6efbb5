"""The configuration of a tenant's embedder, chat model and reranker, from providers' offers."""
