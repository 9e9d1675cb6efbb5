"""Hooks of git that tell of changes in a repository."""
