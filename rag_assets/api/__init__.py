"""The interface for applications and remote agents: HTTP, with a token for every request.

Belongs here: authentication, limits, models of requests and responses, problem documents, logs and
metrics of requests. Does not: searching (retrieval), starting a server (commands). This package
never imports Dagster.
"""
