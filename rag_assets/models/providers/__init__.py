"""Providers of models, each described in one place.

Belongs here: one `Provider` value for each, and for those over a network one package with their
SDK's connection, requests and answers. `registry` lists them: a new one is one new package and
one line there. Does not: limits and retries (transport), keys (billing).
"""
