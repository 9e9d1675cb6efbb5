"""Manifests: the packages that a repository depends on, and the frameworks among them."""
