"""The jobs: a tenant's chain, its checks, and the upkeep of all tenants.

Belongs here: what Dagster runs, as ops over the core's functions. Does not: what an op does to a
document, an index or the lake (pipeline), and when a job runs (sensors).
"""
