"""The interface for agents: a Model Context Protocol server, over stdio or through the API.

Belongs here: tools and their messages. Does not: searching (retrieval), HTTP and its authentication
(api).
"""
