"""The units and facts of SQL statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions.layout import covered
from rag_assets.systems.code_memory.languages.sql.statements import head_of, statements
from rag_assets.systems.code_memory.symbols.model import CodeText, Role, Unit

_PART = r"(?:`[^`]{1,128}`|\"[^\"]{1,128}\"|\[[^\]\n]{1,128}\]|[\w$#@]{1,128})"
_NAME = rf"(?P<name>{_PART}(?:\s?\.\s?{_PART}){{0,3}})"
_KINDS: Final = (
    "TABLE|VIEW|FUNCTION|PROCEDURE|INDEX|TRIGGER|TYPE|SEQUENCE|SCHEMA|DATABASE|EXTENSION|DOMAIN"
    "|EVENT|POLICY|RULE|AGGREGATE|ROLE|USER|SERVER|PACKAGE"
)
_CREATE = re.compile(
    r"(?P<verb>CREATE)\s(?:[^;'(]{0,300}?\s)??(?P<kind>" + _KINDS + r")\s{1,80}"
    r"(?:CONCURRENTLY\s{1,80})?(?:IF\s{1,80}NOT\s{1,80}EXISTS\s{1,80})?"
    r"(?:ON\s{1,80}(?P<on>" + _PART + r")|" + _NAME + r")",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"(?P<verb>ALTER|DROP|RENAME|TRUNCATE)\s{1,80}(?P<kind>TABLE)\s{1,80}"
    r"(?:IF\s{1,80}EXISTS\s{1,80})?(?:ONLY\s{1,80})?" + _NAME,
    re.IGNORECASE,
)
_QUOTED = re.compile(_PART)
_NAMES = rf"(?:ONLY\s{{1,80}})?(?P<name>(?>{_PART}(?:\s?\.\s?{_PART}){{0,3}}))"
_REFERENCED = re.compile(rf"\bREFERENCES\s{{1,80}}{_NAMES}", re.IGNORECASE)
_QUERIED = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE)\s{{1,80}}{_NAMES}(?!\s?\()", re.IGNORECASE)
_ON = re.compile(rf"\bON\s{{1,80}}{_NAMES}", re.IGNORECASE)
_NAMING: Final = {"TABLE": _REFERENCED, "INDEX": _ON, "TRIGGER": _ON}
"""Patterns of table names in statements that create an object, by the object's type.

All other statements query tables.
"""

_NO_TABLES: Final = frozenset(
    {"SELECT", "SET", "LATERAL", "UNNEST", "CONFLICT", "UPDATE", "DELETE", "DUPLICATE", "STDIN"}
)
_ROLES: Final[dict[str, Role]] = {
    "TABLE": "schema",
    "INDEX": "schema",
    "FUNCTION": "function",
    "PROCEDURE": "function",
    "TRIGGER": "function",
    "TYPE": "type",
    "DOMAIN": "type",
}
_LINE_END = re.compile(r"[,;](?=[ \t]{0,80}\r?\n)")
_BODY = re.compile(r"[(;]|\bAS\b", re.IGNORECASE)
_SHOWN: Final = 200
_LONGEST_SEARCHED: Final = 20_000
"""Maximum characters of a statement in which table names are searched."""

_MOST_TABLES: Final = 50


def read_sql(text: str) -> CodeText:
    """Return the units and facts of an .sql file in any dialect."""
    units: list[Unit] = []
    facts: list[Fact] = []
    cuts: set[int] = {found.end() for found in _LINE_END.finditer(text)}
    for start, end in statements(text):
        first, head = head_of(text, start, end)
        cuts.add(end)
        found = _matched(text, head, end)
        if found is not None:
            unit = _unit(text, (first, head, end), found)
            units.append(unit)
            if unit.symbol:
                facts.append(_declared(text, head, unit, found, _tables(text, end, unit, found)))
    return CodeText(covered(text, units, sorted(cuts)), tuple(facts), "sql")


def _matched(text: str, head: int, end: int) -> re.Match[str] | None:
    last = min(end, head + 1_000)
    return _CREATE.match(text, head, last) or _CHANGE.match(text, head, last)


def _unit(text: str, place: tuple[int, int, int], found: re.Match[str]) -> Unit:
    first, head, end = place
    made = found["verb"].upper() == "CREATE"
    role = _ROLES.get(found["kind"].upper(), "definition")
    return Unit(first, end, role, _name(found), _signature(text, head, end, found), alone=made)


def _name(found: re.Match[str]) -> str:
    written = found["name"]
    if written is None:  # The index has no name of its own.
        return ""
    return ".".join(_bare(part) for part in _parts(written))


def _parts(written: str) -> Iterator[str]:
    for part in _QUOTED.finditer(written):
        yield part[0]


def _bare(part: str) -> str:
    return part[1:-1] if part[0] in '`"[' else part


def _signature(text: str, head: int, end: int, found: re.Match[str]) -> str:
    last = min(end, head + 2 * _SHOWN)
    body = _BODY.search(text, found.end(), last)
    if body is not None and found["kind"].upper() not in {"INDEX", "FUNCTION", "PROCEDURE"}:
        last = body.start()
    return " ".join(text[head:last].split()).rstrip(";( ")[:_SHOWN]


def _tables(text: str, end: int, unit: Unit, found: re.Match[str]) -> list[str]:
    """Return the tables that a statement refers to, except the one that it creates."""
    pattern = _NAMING.get(found["kind"].upper(), _QUERIED)
    last = min(end, found.start() + _LONGEST_SEARCHED)
    start = found.end() if found["name"] else found.start()
    names = dict.fromkeys(_name(one) for one in pattern.finditer(text, start, last))
    kept = [name for name in names if name.upper() not in _NO_TABLES and name != unit.symbol]
    return kept[:_MOST_TABLES]


def _declared(text: str, head: int, unit: Unit, found: re.Match[str], tables: list[str]) -> Fact:
    values: dict[str, object] = {
        "name": unit.symbol,
        "role": unit.role,
        "what": found["kind"].lower(),
        "verb": found["verb"].lower(),
        "exported": True,
        "signature": unit.signature,
    }
    if tables:
        values["tables"] = tables
    end = min(unit.end, head + _SHOWN)
    return Fact(
        "declares" if values["verb"] == "create" else "changes", head, end, unit.symbol, values
    )
