"""Laravel: what its conventions make of PHP, in one file and across a repository.

Belongs here: facts that only Laravel's names give a meaning (statements, routes, schema, models),
and what follows from those of all files (kinds, tables).
"""
