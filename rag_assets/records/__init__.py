"""Pushed records as values: their typed bodies, and the pages that they are attached to.

These modules are pure: they do not access a store, and do not depend on Dagster or HTTP.
"""
