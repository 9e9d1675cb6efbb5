"""A question and passages → how well each passage answers it.

Belongs here: the Reranker protocol, a cross-encoder on this machine, an endpoint over the network,
leaving one alone that keeps failing. Does not: which passages are read, and what becomes of their
scores (retrieval).
"""
