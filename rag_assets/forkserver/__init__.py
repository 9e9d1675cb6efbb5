"""A fork server: one process that imports the libraries of commands and runs, and forks for each.

A command imports Dagster, Polars and Elasticsearch for seconds before it does any work. The fork
server imports them once. It opens no connection, model session or thread. Forks share the memory of
the imports.

`protocol` defines the messages on its socket, `client` requests a fork, `server` answers, and
`child` is the fork. `fingerprint` checks whether the imported code still matches the disk. The
command line's fork server decides which code is imported and executed.
"""
