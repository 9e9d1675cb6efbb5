"""A fork server: one process that has imported what commands and runs need, and forks for each.

A command imports Dagster, Polars and Elasticsearch for seconds before it does anything. The fork
server does that once and opens nothing: no connection, no model session, no thread. What is
started through it is a fork, with the memory of the imports shared.

`protocol` is what travels over its socket, `client` asks for a fork, `server` answers, `child` is
the fork, and `fingerprint` tells whether the imported code is still the code on the disk. None of
them knows what is imported or executed: the command line's fork server says so.
"""
