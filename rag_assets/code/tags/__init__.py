"""Definitions and references of any language, read by tag queries of tree-sitter's grammars.

Belongs here: the languages as data (languages.toml, queries/), what runs the queries, and the index
of the names in one file. Does not: what a name means in its repository, which other files decide
(see retrieval.uses).
"""
