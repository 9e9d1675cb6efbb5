"""Workspaces as values: bodies of records, the tree of pages, settings.

These modules are pure: they do not access a store, and do not depend on Dagster or HTTP.
"""
