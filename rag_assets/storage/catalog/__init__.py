"""The authority: what every tenant's documents are, where they stand, and which index answers.

Belongs here: tables, migrations, queries, the tenant lock. Does not: decisions (planning is in
stages), file or index access.
"""
