"""JavaScript and TypeScript, with JSX: modules, what they export, and what they fetch."""

from __future__ import annotations

from rag_assets.code.languages.definitions.reader import read_code
from rag_assets.code.languages.javascript.grammar import Jsx, Tsx, TypeScript
from rag_assets.code.model import CodeText

__all__ = ["read_javascript", "read_tsx", "read_typescript"]


def read_javascript(text: str) -> CodeText:
    """Units and facts of a .js, .jsx, .mjs or .cjs file."""
    return read_code(text, Jsx)


def read_typescript(text: str) -> CodeText:
    """Units and facts of a .ts, .mts or .cts file."""
    return read_code(text, TypeScript)


def read_tsx(text: str) -> CodeText:
    """Units and facts of a .tsx file."""
    return read_code(text, Tsx)
