"""Laravel's routes: what files state of them, and the router's table that follows from all files.

Belongs here: `reader.facts_of`, which makes local facts of one file, and `resolver.routes_of`,
which runs the facts of a repository as Laravel's router would run its files. Nothing of the
repository is executed: facts are data, and what they do not tell stays unresolved.
"""
