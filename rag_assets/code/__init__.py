"""Source code as text: the statements of its files, and conclusions from many files.

Belongs here: languages (a file's units and facts), frameworks (conclusions from their conventions),
places of files, relations. Everything is pure: it takes texts and facts, reads no files or stores,
and runs nothing from a repository.
"""
