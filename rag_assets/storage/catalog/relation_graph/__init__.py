"""Relations of repositories in memory: the same as the catalog's, at a fraction of their time."""
