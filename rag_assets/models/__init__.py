"""Models, on this machine and over the network: embedding, reranking, chat.

Belongs here: protocols, providers, prices, connections. Does not: whose key and whose money it is
(billing), what is asked (pipeline, retrieval).
"""
