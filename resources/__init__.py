"""Dagster resources: servers, lake, embedders and the tenant's lock, as a run or a sensor needs them.

Belongs here: turning configuration and environment into the core's objects. Does not: any logic
about documents. May import: dagster and every package of the core.
"""
