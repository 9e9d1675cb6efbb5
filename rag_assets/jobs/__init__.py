"""The jobs: a tenant's pipeline, its checks, and the upkeep of all tenants.

What belongs here: the work that Dagster runs, as ops that call the core's functions. What does not:
operations on a document, an index or the lake (see `pipeline`), and when a job runs (see
`sensors`).
"""
