"""Dagster resources: servers, lake, embedders and the tenant's lock, for runs and sensors.

Resources create the core's objects from configuration and environment. Logic about documents
belongs in `pipeline`.
"""
