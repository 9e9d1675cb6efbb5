"""Derived documents: routes and tables, which follow from several files of a repository.

Belongs here: what a document of a route or a table says (`documents.derived_documents`), its text
and how that is read. Does not: the routers, migrations and models of frameworks.
"""
