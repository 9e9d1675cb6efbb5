"""Chat models of tenants: instructions and a prompt → text.

Belongs here: the ChatModel protocol, prices, the conversion of failures. Does not: the contents of
prompts and the use of answers (retrieval), keys and costs (billing), requests to providers
(providers).
"""
