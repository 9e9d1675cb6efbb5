"""Django: interpretation of Python code by Django's conventions, across a repository.

Belongs here: routes of URL configurations, models, the tables that result from migrations, kinds.
Does not belong here: the facts of a single Python file (languages.python).
"""
