"""Definitions and references in any language, read by the tag queries of tree-sitter grammars.

Belongs here: the languages as data (languages.toml, queries/), the code that runs the queries, and
the index of the names in one file. Does not: the meaning of a name in its repository, which other
files decide (see retrieval.uses).
"""
