"""Sensors and schedules, which start runs.

What belongs here: sensors and schedules; their decisions are pure functions in due.py. What does
not: the work itself (see `jobs` and `assets`).
"""
