"""Git repositories, read without git and without its library's notion of a repository.

libgit2 serves as the database of objects alone. Refs, the index, configuration, ignore rules and
attributes are parsed here from files that are opened without following links, so that nothing in a
repository can name a command, a file or a folder that is then used: hooks, filters, fsmonitor,
external diffs, credential helpers and included files are not refused, they are not known.

`folders` finds a repository, `refs` its commits, `objects` and `trees` what they hold, `worktree`
what lies beside it, `exclusion` what stays out, and `repository` holds them together.
"""
