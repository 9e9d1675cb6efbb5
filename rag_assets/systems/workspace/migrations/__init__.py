"""Versions of the tables of workspaces."""
