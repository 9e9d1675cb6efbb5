"""One module a provider of embeddings over the network.

Belongs here: what a provider's models are, one request to it through its own SDK, the names of its
failures. Does not: when to try again and how fast to go (remote), whose key it is (accounts).
"""
