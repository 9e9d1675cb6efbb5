"""Frameworks: interpretation of facts by their conventions, in one file and across a repository.

Belongs here: one package for each framework, recognized by a repository's manifests. Does not: the
grammars of syntax trees (languages).
"""
