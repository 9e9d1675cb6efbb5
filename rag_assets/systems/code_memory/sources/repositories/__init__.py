"""Git repositories, read without git and without its library's notion of a repository.

libgit2 serves only as the object database. Refs, the index, configuration, ignore rules and
attributes are parsed here, from files that are opened without following links. So a repository
cannot name a command, a file or a folder that is then used: hooks, filters, fsmonitor, external
diffs, credential helpers and included files are not refused, they are unknown.

`folders` finds a repository, `refs` its commits, `objects` and `trees` their content, `worktree`
the files of the worktree, `exclusion` the files that stay out, and `repository` combines them.
"""
