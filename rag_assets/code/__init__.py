"""Source code as text: what its files state, and what follows from many of them.

Belongs here: languages (a file's units and facts), frameworks (what their conventions make of
these), places of files, relations. Everything is pure: it takes texts and facts, reads no file,
knows no store, and runs nothing of a repository.
"""
