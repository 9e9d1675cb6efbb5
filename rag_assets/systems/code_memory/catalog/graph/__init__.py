"""Relations of repositories in memory: the same as in the catalog, but read much faster."""
