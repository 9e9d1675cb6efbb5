"""Interpretation of PHP code by Laravel's conventions, within one file and across a repository.

Belongs here: facts that depend on Laravel's names (statements, routes, schema, models), and
conclusions from the facts of all files (source types, tables).
"""
