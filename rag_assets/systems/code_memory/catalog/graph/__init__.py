"""Relations of repositories in memory: the same as in the catalog, but much faster to read."""
