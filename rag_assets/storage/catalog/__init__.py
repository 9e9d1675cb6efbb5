"""The catalog: the state of every tenant's documents, and the serving index.

Belongs here: tables, migrations, queries, the tenant lock. Does not belong here: decisions about
documents (they belong to the pipeline), file or index access.

`catalog` is the entry; `database`, `statements`, `tables`, `migrate` and `lock` serve all packages.
"""
