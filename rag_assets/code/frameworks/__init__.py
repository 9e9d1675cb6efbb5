"""Frameworks: what their conventions make of facts, in one file and across a repository.

Belongs here: one package for each framework, told by a repository's manifests. Does not: syntax
trees' grammars (languages).
"""
