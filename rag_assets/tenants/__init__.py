"""Tenants: their configuration, and how their documents are indexed and searched.

Belongs here: the Tenant model, profiles, reading and editing tenants.yaml.
Does not belong here: the state and incarnation of tenants (storage.catalog).
"""
