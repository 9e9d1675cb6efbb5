"""Providers of models, each defined in one place.

Belongs here: one `Provider` value for each provider and, for each remote provider, a module with
its SDK's connection, requests and responses. `registry` lists the providers; a new provider needs a
new module and a line there. Does not: limits and retries (transport), keys (billing).
"""
