"""The embedded default: Postgres and Elasticsearch from packages, and Dagster's two processes.

Belongs here: starting, finding, waiting for and stopping local servers. Does not: schemas,
mappings, and other code that works the same against a remote server.
"""
