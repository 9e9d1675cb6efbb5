"""Django: what its conventions make of Python, across a repository.

Belongs here: routes of URL configurations, models, the tables that migrations result in, kinds.
Does not: what a file of Python states by itself (languages.python).
"""
