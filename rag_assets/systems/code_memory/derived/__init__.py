"""Derived documents: routes and tables, each derived from several files of a repository.

Belongs here: the content of a route's or table's document (`documents.derive_documents`), its text
and its parser. Does not belong here: reading the routers, migrations and models of frameworks.
"""
