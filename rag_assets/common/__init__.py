"""Modules that every package uses: errors, settings, hashing, times, tokens, formatting.

Belongs here: small modules that depend on no tenant, document or server. Does not: a module with a
single user, which belongs next to that user.
"""
