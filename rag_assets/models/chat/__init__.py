"""Instructions and a prompt → words, written by a tenant's chat model.

Belongs here: the ChatModel protocol, providers, prices, the names of failures. Does not: what is
asked and what is kept of the answer (retrieval), keys and costs (billing), requests to
providers (providers).
"""
