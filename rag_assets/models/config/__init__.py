"""Which embedder and chat model a tenant has, as tenants.yaml says it.

Belongs here: settings that depend on what each provider offers. A reranker's do not, and are in
reranking.
"""
