"""Dagster resources: servers, lake, embedders and the tenant's lock, for runs and sensors.

Belongs here: turning configuration and environment into the core's objects. Does not: any logic
about documents.
"""
