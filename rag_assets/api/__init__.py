"""The interface for applications and remote agents: HTTP, with a token for every request.

Belongs here: authentication, limits, what requests and answers look like, problem documents, logs
and metrics of requests. Does not: how questions are answered (retrieval), starting a server
(commands). Nothing here imports Dagster.
"""
