"""The catalog: the state of every tenant's documents, and the serving index.

What belongs here: tables, migrations, queries, the tenant lock. Elsewhere: decisions about
documents (pipeline), file or index access.
"""
