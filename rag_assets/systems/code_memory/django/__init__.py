"""Django: routes and source types that framework data alone cannot state, across a repository.

Belongs here: routes of URL configurations, the routes of routers and viewsets, source types. Does
not belong here: names of functions and base classes (frameworks/data/django.toml), tables and
columns (frameworks.tables), and the targets of names in Python (languages.python.program).
"""
