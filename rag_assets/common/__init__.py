"""What every package uses and none owns: errors, settings, hashing, times, tokens, formatting.

Belongs here: small modules without knowledge of tenants, documents or servers. Does not: what has
one user, which lives beside it.
"""
