"""Generators of documentation pages from code and benchmark results."""
