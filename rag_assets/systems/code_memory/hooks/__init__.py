"""Git hooks that report changes in a repository."""
