"""The configuration of a tenant's embedder and chat model.

Belongs here: settings that depend on what each provider offers. A reranker's do not, and are in
reranking.
"""
