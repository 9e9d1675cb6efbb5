"""The catalog: the state of every tenant's documents, and the serving index.

Belongs here: tables, migrations, queries, the tenant lock. Does not: decisions about
documents (pipeline), file or index access.
"""
