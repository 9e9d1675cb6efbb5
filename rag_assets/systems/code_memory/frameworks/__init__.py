"""Frameworks as data: the rules for routes, tables and tests, in one file for each framework.

Belongs here: the data (data/), the statements of a text in the form of the data (statements,
facts), and the routes derived from them (routes). Does not belong here: the interpreters of Laravel
and of Django's routes.
"""
