"""A workspace that is pushed to all the time: it is found soon, and nothing is lost."""
