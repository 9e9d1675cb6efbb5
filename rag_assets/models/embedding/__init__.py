"""Embedding models, which turn texts into vectors.

Belongs here: the Embedder protocol, batching, limits, cost, the shipped model and others on this
machine. Does not: which texts need a vector (planned from the lake), storage of vectors (lake).
"""
