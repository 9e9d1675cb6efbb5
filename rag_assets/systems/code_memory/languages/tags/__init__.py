"""Definitions and references in any language, found by the tag queries of tree-sitter grammars.

Belongs here: the languages as data (languages.toml, queries/), the code that runs the queries, and
the index of the names in one file. Does not belong here: what a name refers to in its repository,
because other files decide that (see retrieval.uses).
"""
