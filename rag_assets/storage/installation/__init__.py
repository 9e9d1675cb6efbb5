"""The identity of an installation: whether its catalog, home folder and stores belong together."""
