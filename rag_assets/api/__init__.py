"""The interface for applications and remote agents: HTTP, with a token for every request.

What belongs here: authentication, limits, models of requests and responses, problem documents, logs
and metrics of requests. What does not: searching (see `retrieval`) and starting a server (see
`cli`). This package never imports Dagster.
"""
