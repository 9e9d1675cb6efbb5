"""Sensors and schedules, which start runs.

Belongs here: sensors and schedules; decisions are pure functions in due.py. Does not: the work
itself (stages).
"""
