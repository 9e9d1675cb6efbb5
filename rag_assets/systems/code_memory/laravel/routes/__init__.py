"""Laravel's routes: the statements in files, and the route table that results from all files.

Belongs here: `reader.iter_facts`, which creates the facts of one file, and `machine.run_providers`,
which evaluates the facts of a repository in the order in which Laravel would run its files. No code
of the repository is executed: values that the facts do not show stay unresolved.
"""
