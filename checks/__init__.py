"""Asset checks: independent verification of a tenant's data.

Belongs here: a module per check with its verdict as pure functions over rows, and a function that
`tenant_check` declares. Does not: gates, which work per document in the core before anything is
written, and repairs of the findings (pipeline).
"""
