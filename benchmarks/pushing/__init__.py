"""A workspace under constant pushes: changes are found soon, and nothing is lost."""
