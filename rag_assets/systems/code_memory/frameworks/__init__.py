"""Frameworks as data: the rules for routes, tables, tests and events, one file per framework.

Belongs here: the rules (data/), the reader that brings a text's statements into a form that the
rules can match (statements, facts), and the routes and tables derived from them. Does not belong
here: the interpreters of Laravel and of Django's routes.
"""
