"""A team's own Dagster project, whose names collide with ours."""
