"""Rerankers: a question and passages → a score for each passage.

Belongs here: the Reranker protocol, a cross-encoder on this machine, an endpoint over the network,
a circuit breaker. Does not: the selection of passages, and the use of their scores (search).
"""
