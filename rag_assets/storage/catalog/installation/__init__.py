"""Data about the installation: its identity, clock, Postgres roles, and Dagster's schema."""
