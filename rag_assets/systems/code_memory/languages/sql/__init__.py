"""SQL in any dialect: statements, and the names of the objects that they create.

A custom lexer splits the statements, because each SQL grammar knows only one dialect and loses the
rest of a dump at the first unknown word.
"""

from __future__ import annotations

from rag_assets.systems.code_memory.languages.sql.reader import read_sql

__all__ = ["read_sql"]
