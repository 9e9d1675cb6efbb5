"""The jobs: a tenant's pipeline, its checks, and the upkeep of all tenants.

Jobs are ops that call the core's functions. Operations on documents, indexes and the lake belong in
`pipeline`, and the times at which jobs run in `sensors`.
"""
