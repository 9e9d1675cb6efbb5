"""SQL queries in the strings of a program in any language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.symbols.model import CodeText

_TABLES: Final = re.compile(
    r"\b(?:extract|trim|substring|overlay)\s*\([^()]{0,200}?\bfrom\b"
    r"|\b(?:from|join|into|update)\s+([`\"\[]?)([A-Za-z_][\w.]{0,63})",
    re.IGNORECASE,
)
"""Matches a quotation mark and the name of a table; both empty for `extract(year from due)`."""

_NAMED_HERE: Final = re.compile(r"\b(\w{1,64})\s+as\s+(?:(?:not\s+)?materialized\s*)?\(", re.I)
"""Matches the names that `with … as (` defines; they are not tables."""

_NO_TABLES: Final = frozenset(
    {"select", "set", "lateral", "unnest", "only", "values", "where"}
    | {"the", "a", "an", "this", "these", "your", "my", "our", "their", "its"}
)
"""Words that may stand where a query has a table; in quotation marks, they are names."""

_VERBS: Final = (
    r"select\b|insert\s+(?:ignore\s+|or\s+\w+\s+)?into\b|replace\s+into\b"
    r"|delete\s+from\b|update\s+[\w.`\"\[\]\\]{1,80}\s+(?:(?:as\s+)?\w{1,64}\s+)?set\b"
    r"|with\s+(?:recursive\s+)?\w{1,64}\s*(?:\([^()]{0,500}\)\s*)?as\s*\(|merge\s+into\b"
    r"|(?:(?:inner|cross|(?:left|right|full)(?:\s+outer)?)\s+)?join\b"
)
_QUERY: Final = re.compile(
    r"(?<!\\)(?P<quote>\"\"\"|'''|[\"'`])(?:\s|\\n|--[^\n]{0,200}\n|\(){0,200}+"
    rf"(?:(?={_VERBS})|(?i:(?={_VERBS}))(?=[A-Z]{{4}}))"
)
"""Matches the start of a query in a string. Keywords of a query have a single case, unlike a
sentence."""

_COMPLETED_BY: Final = (
    (re.compile(r"select\b", re.I), re.compile(r"\bfrom\b", re.I)),
    (re.compile(r"(?:\w+\s+){0,2}join\b", re.I), re.compile(r"\bon\b", re.I)),
)
"""Verbs that may also start a sentence, each with the word that must follow in a query."""

_STRINGS: Final = {
    '"': re.compile(r'(?:[^"\\]|\\.){0,20000}+', re.DOTALL),
    "'": re.compile(r"(?:[^'\\]|\\.){0,20000}+", re.DOTALL),
    "`": re.compile(
        r"(?:[^`\\$]|\\.|\$(?!\{)|\$\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}){0,20000}+", re.DOTALL
    ),
}
_HOLE: Final = re.compile(r"\$?\{[^{}]*\}\.?|#\{[^{}]*\}\.?")
"""Matches a computed part of a template; before a dot, that part is the schema of a table."""

_LONGEST: Final = 20_000
_MOST: Final = 50
_SHOWN: Final = 200


def with_queries(text: str, reading: CodeText) -> CodeText:
    """Return a reading with the tables that SQL queries in its strings name.

    Each table yields the fact `queries_table` {table}, whose symbol is the enclosing definition.
    """
    found = [*_queries(text, reading)]
    if not found:
        return reading
    ordered = sorted((*reading.facts, *found), key=lambda fact: (fact.start, fact.end))
    return replace(reading, facts=tuple(ordered))


def tables_in_sql(query: str) -> list[str]:
    """Return the tables that a query names, without duplicates."""
    here = {name.lower() for name in _NAMED_HERE.findall(query)}
    found = dict.fromkeys(
        name
        for quote, name in _TABLES.findall(query)
        if name and name.lower() not in here and (quote or name.lower() not in _NO_TABLES)
    )
    return [*found]


def _queries(text: str, reading: CodeText) -> Iterator[Fact]:
    at = 0
    while (begins := _QUERY.search(text, at)) is not None:
        start = begins.start() + len(begins["quote"])
        end = _end(text, begins["quote"], start)
        if not _is_complete(text[begins.end() : end]):
            # This quotation mark may end a string and not start one.
            at = start
            continue
        at = end
        symbol = _symbol(reading, begins.start())
        for table in tables_in_sql(_HOLE.sub(_without_schema, text[start:end]))[:_MOST]:
            last = min(end, start + _SHOWN)
            yield Fact("queries_table", begins.start(), last, symbol, {"table": table})


def _is_complete(query: str) -> bool:
    """Return whether a query has the words that its verb requires before its first semicolon."""
    statement = query.partition(";")[0]
    needed = [word for verb, word in _COMPLETED_BY if verb.match(statement)]
    return all(word.search(statement) for word in needed)


def _without_schema(hole: re.Match[str]) -> str:
    return "" if hole[0].endswith(".") else "{}"


def _end(text: str, quote: str, start: int) -> int:
    """Return the offset after a string's content, at most _LONGEST characters after its start."""
    if len(quote) > 1:
        end = text.find(quote, start, start + _LONGEST)
        return end if end >= 0 else min(len(text), start + _LONGEST)
    found = _STRINGS[quote].match(text, start)
    return start if found is None else found.end()


def _symbol(reading: CodeText, at: int) -> str:
    """Return the name of the innermost definition at an offset."""
    held = [one for one in reading.facts if one.kind == "declares" and one.start <= at < one.end]
    if held:
        return min(held, key=lambda one: one.end - one.start).symbol
    return next((one.symbol for one in reading.units if one.start <= at < one.end), "")
