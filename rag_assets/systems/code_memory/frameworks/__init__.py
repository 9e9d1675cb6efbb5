"""Frameworks as data: the rules for routes, tables, tests and events, one file per framework.

Belongs here: the data (data/), the statements of a text in the form of the data (statements,
facts), and the routes and tables derived from them. Does not belong here: the interpreters of
Laravel and of Django's routes.
"""
