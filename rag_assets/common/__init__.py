"""Modules that every package uses: errors, settings, hashing, times, tokens, formatting.

Belongs here: small modules that depend on no tenant, document or server. Does not belong here: a
module with a single user; it belongs next to that user.
"""
