"""A team's Dagster project, which has nothing of ours: its names are those that ours could have."""
