"""Asset checks: independent verification of a tenant's data.

What belongs here: a module for each check, with its verdict as pure functions over rows, and a
function that `tenant_check` declares. What does not: gates, which check each document in the core
before anything is written, and repairs of the findings (see `pipeline`).
"""
