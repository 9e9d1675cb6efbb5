"""SQL of any dialect: statements, and the names of what they make.

Statements are split by a lexer of our own: the grammars for SQL know one dialect each and lose
the rest of a dump at the first word that they do not know.
"""

from __future__ import annotations

from rag_assets.code.languages.sql.reader import read_sql

__all__ = ["read_sql"]
