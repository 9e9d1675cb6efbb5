"""Laravel's routes: the statements in files, and the route table that results from all files.

Belongs here: `reader.list_facts`, which creates the facts of one file, and `machine.run_providers`,
which runs the facts of a repository as Laravel's router would run its files. Nothing from the
repository is executed: facts are data, and anything that they do not show stays unresolved.
"""
