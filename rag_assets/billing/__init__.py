"""Tenants' accounts at providers of models: keys, the models they get, spending.

Belongs here: keys and their encryption, the choice of an embedder, spending caps.
Does not: requests to providers (models), rows (storage.catalog).
"""
