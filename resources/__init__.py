"""Dagster resources: servers, lake, embedders and the tenant's lock, for runs and sensors.

What belongs here: creating the core's objects from configuration and environment. What does not:
any logic about documents.
"""
