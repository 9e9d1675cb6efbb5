"""The jobs: a tenant's pipeline, its checks, and the upkeep of all tenants.

Belongs here: the work that Dagster runs, as ops over the core's functions. Does not: operations on
a document, an index or the lake (pipeline), and when a job runs (sensors).
"""
