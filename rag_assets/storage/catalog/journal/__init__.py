"""The journal: events, security changes, check results, and the records for an auditor."""
