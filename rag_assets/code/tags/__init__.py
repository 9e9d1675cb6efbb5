"""Definitions and references of any language, read by tag queries of tree-sitter's grammars.

Belongs here: the languages as data (languages.toml, queries/), the code that runs the queries, and
the index of the names in one file. Does not: the meaning of a name in its repository, which other
files decide (see retrieval.uses).
"""
