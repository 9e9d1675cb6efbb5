"""Workspaces as values: bodies of records, the tree of pages, settings.

What is here is pure: it neither reads nor writes a store, and knows neither Dagster nor HTTP.
"""
