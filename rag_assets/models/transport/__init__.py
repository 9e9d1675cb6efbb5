"""Requests to servers of models: permitted addresses, limits, retries and errors.

Belongs here: networking that models of every kind share. Does not: contents of requests and
responses (embedding, reranking, chat, providers), keys (billing).
"""
