"""Git repositories, read without running git and without libgit2's own handling of repositories.

libgit2 serves only as the object database. Refs, the index, configuration, ignore rules and
attributes are parsed here, from files that are opened without following links. So a repository
cannot make the reader run a command or open a file or folder elsewhere. This code ignores hooks,
filters, fsmonitor, external diffs, credential helpers and included files.
"""
