"""Instructions and a prompt → words, written by a tenant's chat model.

Belongs here: the ChatModel protocol, providers, prices, the names of failures. Does not: what is
asked and what is kept of the answer (retrieval), whose key and whose money it is (accounts).
Providers are reached over the guarded connections of embedding.
"""
