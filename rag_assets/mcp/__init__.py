"""The interface for agents: a Model Context Protocol server, over stdio or through the API.

What belongs here: tools and their messages. What does not: searching (see `retrieval`), HTTP and
its authentication (see `api`).
"""
