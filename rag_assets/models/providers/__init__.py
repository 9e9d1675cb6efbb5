"""Providers of models, each defined in one place.

Belongs here: one `Provider` value for each, and for each remote one a package with its SDK's
connection, requests and responses. `registry` lists them: a new provider is one new package and
one line there. Does not: limits and retries (transport), keys (billing).
"""
