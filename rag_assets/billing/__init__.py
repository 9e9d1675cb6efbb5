"""Tenants' accounts at providers of models: keys, chosen models, spending.

Belongs here: keys and their encryption, clients of models built for tenants, spending caps, usage.
Does not belong here: requests to providers (models), rows (storage.catalog).
"""
