"""The installation as a whole: its identity, clock, roles of Postgres, and Dagster's schema."""
