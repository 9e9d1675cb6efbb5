"""Frameworks as data: the rules for routes, tables and tests, one file for each framework.

Belongs here: the data (data/), the statements of a text in the terms of the data (statements,
facts), and the routes derived from them (routes). Does not: Laravel and Django, which interpreters
read exactly.
"""
