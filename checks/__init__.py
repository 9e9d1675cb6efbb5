"""Asset checks: independent verification of a tenant's data.

Each check has a module with a function that `tenant_check` declares, and pure functions over rows
that build its verdict. Gates, which check documents before they are written, and repairs belong in
`pipeline`.
"""
