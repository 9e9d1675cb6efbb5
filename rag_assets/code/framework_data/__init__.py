"""Frameworks as data: what makes a route, a table, an event or a test, one file for each framework.

Belongs here: the data (frameworks/), what a text states in the terms of the data (statements), and
the routes and tables that follow (derivation). Does not: Laravel and Django, which interpreters
read exactly (see code.frameworks).
"""
