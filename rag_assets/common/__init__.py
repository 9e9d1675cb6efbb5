"""Modules that every package uses: errors, settings, hashing, times, tokens, formatting.

Belongs here: small modules without knowledge of tenants, documents or servers. Does not: a module
with a single user, which lives beside it.
"""
