"""The interface for agents: tools of the Model Context Protocol, over a pipe or through the API.

Belongs here: tools and their messages. Does not: how questions are answered (retrieval), HTTP and
its authentication (api).
"""
