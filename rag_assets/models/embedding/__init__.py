"""Texts → vectors.

Belongs here: the Embedder protocol, providers, batching, limits, cost, the shipped model.
Does not: which texts need a vector (planned from the lake), storage of vectors (lake).
"""
