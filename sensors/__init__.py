"""Sensors and schedules, which start runs.

Their decisions are pure functions in due.py and turns.py. The work itself belongs in `jobs` and
`assets`.
"""
