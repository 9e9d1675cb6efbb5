"""What starts runs: changes in tenants.yaml and in sources, failures, and the clock.

Belongs here: sensors and schedules; decisions are pure functions in due.py. Does not: the
work itself (stages).
"""
