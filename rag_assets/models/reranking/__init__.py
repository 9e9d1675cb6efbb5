"""Rerankers, which score passages by how well they answer a question.

Belongs here: the Reranker protocol, a cross-encoder on this machine, an endpoint over the network,
a circuit breaker. Does not: the selection of passages, and the use of their scores (search).
"""
