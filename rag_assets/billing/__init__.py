"""A tenant's account at its embedding provider: whose key, which embedder, how much money.

Belongs here: keys and their encryption, the choice of an embedder, caps on spending.
Does not: talking to providers (embedding), rows (catalog).
"""
