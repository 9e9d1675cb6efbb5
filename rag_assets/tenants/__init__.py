"""Who the knowledge belongs to, and how theirs is to be indexed.

Belongs here: the Tenant model, profiles, reading and editing tenants.yaml.
Does not: the tenants' state and incarnation (catalog).
"""
