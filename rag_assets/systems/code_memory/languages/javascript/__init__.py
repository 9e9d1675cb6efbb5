"""JavaScript and TypeScript, with JSX: modules, their exports, and the requests that they send."""

from __future__ import annotations

from rag_assets.systems.code_memory.languages.definitions.reader import read_code
from rag_assets.systems.code_memory.languages.javascript.grammar import Jsx, Tsx, TypeScript
from rag_assets.systems.code_memory.symbols.model import CodeText

__all__ = ["read_any_typescript", "read_javascript", "read_tsx", "read_typescript"]


def read_javascript(text: str) -> CodeText:
    """Return the units and facts of a .js, .jsx, .mjs or .cjs file."""
    return read_code(text, Jsx)


def read_typescript(text: str) -> CodeText:
    """Return the units and facts of a .ts, .mts or .cts file."""
    return read_code(text, TypeScript)


def read_tsx(text: str) -> CodeText:
    """Return the units and facts of a .tsx file."""
    return read_code(text, Tsx)


def read_any_typescript(text: str) -> CodeText:
    """Return the units and facts of a TypeScript file, with or without JSX.

    The two syntaxes cannot be combined: `<T>x` is a cast in TypeScript, but opens an element in
    JSX. If neither parses without errors, the reading with more facts is returned.
    """
    plain = read_typescript(text)
    if not plain.notes:
        return plain
    with_elements = read_tsx(text)
    more = len(with_elements.facts) > len(plain.facts)
    return with_elements if more or not with_elements.notes else plain
