"""The local servers of a default installation: Postgres, Elasticsearch, Dagster's two processes.

What belongs here: starting, finding, waiting for and stopping local servers, whose programs come
from Python packages. What does not: schemas, mappings, and other code that works the same with a
remote server.
"""
