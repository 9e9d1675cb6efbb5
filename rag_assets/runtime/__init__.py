"""The processes of an installation: local servers, Dagster's two processes, the change watcher.

What belongs here: starting, finding, waiting for and stopping local processes, and finding the
tenants to sync now from changes in folders. What does not: schemas, mappings, and other code that
works the same with a remote server.
"""
