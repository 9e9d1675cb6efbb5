"""The readers of all these languages by name, and the invariants of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from rag_assets.systems.code_memory.languages.components import read_svelte, read_vue
from rag_assets.systems.code_memory.languages.go import read_go
from rag_assets.systems.code_memory.languages.java import read_java
from rag_assets.systems.code_memory.languages.javascript import (
    read_javascript,
    read_tsx,
    read_typescript,
)
from rag_assets.systems.code_memory.languages.rust import read_rust
from rag_assets.systems.code_memory.languages.sql import read_sql
from rag_assets.systems.code_memory.languages.swift import read_swift
from rag_assets.systems.code_memory.symbols.model import CodeText

READERS: Mapping[str, Callable[[str], CodeText]] = {
    "javascript": read_javascript,
    "typescript": read_typescript,
    "tsx": read_tsx,
    "vue": read_vue,
    "svelte": read_svelte,
    "swift": read_swift,
    "go": read_go,
    "java": read_java,
    "rust": read_rust,
    "sql": read_sql,
}


def assert_covers(text: str, code: CodeText) -> None:
    """Fail unless each character except white space is in one unit, and facts are in the text."""
    at = 0
    for unit in code.units:
        assert at <= unit.start < unit.end <= len(text)
        assert not text[at : unit.start].strip()
        assert all(unit.start < cut < unit.end for cut in unit.cuts)
        assert list(unit.cuts) == sorted(set(unit.cuts))
        at = unit.end
    assert not text[at:].strip()
    assert all(0 <= fact.start <= fact.end <= len(text) for fact in code.facts)
    short = (fact for fact in code.facts if fact.kind != "declares")
    assert all(fact.end - fact.start <= 4_000 for fact in short)


def assert_units_cover(text: str, code: CodeText) -> None:
    """Fail unless each visible character is in exactly one unit."""
    covered = "".join(text[unit.start : unit.end] for unit in code.units)
    assert "".join(covered.split()) == "".join(text.split())
    assert all(before.end <= after.start for before, after in pairwise(code.units))


def named(code: CodeText, kind: str) -> set[tuple[str, str]]:
    return {(fact.symbol, fact.values["name"]) for fact in code.facts if fact.kind == kind}
