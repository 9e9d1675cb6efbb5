"""A fork server: one process that imports all libraries, and forks for each command or run.

Importing Dagster, Polars and Elasticsearch takes a command seconds before it does any work. The
fork server imports them once, and its forks share the memory of the imports. The fork server opens
no connection, model session or thread.

`protocol` defines the messages on its socket, `client` requests a fork, and `server` answers. The
command line's fork server decides which code is imported and executed.
"""
