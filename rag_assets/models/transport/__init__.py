"""Requests to servers of models: where they may lead, how often, and the names of failures.

Belongs here: what models of every kind need of a network. Does not: what is sent and read
(embedding, reranking, chat, providers), whose key it is (billing).
"""
