"""Definitions of languages that no grammar reads here, by their keywords and their indentation.

Each line that begins a class, a module or a function gives a unit with its name. Nothing is told of
what these use: answers about use say that such files were read for names only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from rag_assets.code.languages.units import covering
from rag_assets.code.model import CodeText, Fact, Role, Unit

LANGUAGES: Final = frozenset(
    {"c", "c++", "csharp", "dart", "elixir", "graphql", "groovy", "julia", "kotlin", "lua", "perl"}
    | {"powershell", "prisma", "protobuf", "r", "ruby", "scala", "shell"}
)
"""Languages, as media types name them, that are read by this module."""

_MODIFIERS: Final = (
    r"(?:(?:abstract|actual|async|case|companion|const|data|explicit|export|expect|extern|external"
    r"|final|implicit|inline|infix|inner|internal|lazy|local|open|operator|override|partial"
    r"|private(?:\[\w+\])?|protected|pub|public|readonly|sealed|static|suspend|tailrec|unsafe"
    r"|value|virtual)\s+)*+"
)
_TYPES: Final = re.compile(
    r"(?P<indent>[ \t]*+)(?:\[[^\]\n]{1,200}\]\s*+|@\w+\s++)*+"
    + _MODIFIERS
    + r"(?:(?:class|interface|struct|enum(?:\s+(?:class|struct))?|trait|module|namespace|defmodule"
    r"|defprotocol|annotation\s+class)\s++(?P<name>[A-Za-z_][\w.]*+(?:::\w++)*+)"
    # Words that prose and queries within strings have, too.
    r"|(?:extension|input|message|mixin|model|object|record|service|type|union)\s++"
    r"(?P<other>[A-Za-z_]\w*+)(?=\s*+(?:[{(<:=]|(?:extends|implements|with|on)\b)))"
)
_FUNCTIONS: Final = re.compile(
    r"(?P<indent>[ \t]*+)(?:\[[^\]\n]{1,200}\]\s*+|@\w+\s++)*+"
    + _MODIFIERS
    + r"(?:def|defp|defmacro|fun|func|fn|function|sub|proc|rpc|macro)\s++(?:<[^>\n]{1,80}>\s*+)?"
    r"(?:\([^)\n]{1,80}\)\s*+)?(?:self\.|\w+(?=\.)\.)?(?P<name>[A-Za-z_]\w*+[?!]?(?:[.:]\w++)*+)"
)
_ASSIGNED: Final = re.compile(
    r"(?P<indent>[ \t]*+)(?P<name>[A-Za-z_][\w.]*+)\s*+(?:<-|=)\s*+function\s*+\("
)
_SHELL: Final = re.compile(r"(?P<indent>[ \t]*+)(?P<name>[A-Za-z_][\w-]*+)\s*+\(\)\s*+\{?\s*+$")
_C_LIKE: Final = re.compile(
    r"(?P<indent>[ \t]*+)(?!(?:return|if|else|for|foreach|while|switch|new|throw|using|case|catch"
    r"|do|delete|await|yield|goto|typedef|lock|import|package|include|assert)\b)"
    r"(?:[\w:~]++(?:<[^;(){}\n]{1,120}>)?[\[\]*&?]*+[ \t]++[*&]*+){1,6}+"
    r"(?P<name>~?[A-Za-z_]\w*+(?:::~?\w++)*+)\s*+(?:<[^>\n]{1,80}>)?\((?![^\n]*;\s*+$)[^\n]*$"
)
_OF_LANGUAGES: Final = {
    **dict.fromkeys(("c", "c++", "csharp", "dart", "groovy"), _C_LIKE),
    **dict.fromkeys(("shell",), _SHELL),
    **dict.fromkeys(("r", "lua"), _ASSIGNED),
}
"""The forms of functions that a keyword does not show."""
_ABOVE: Final = re.compile(r"[ \t]*(?:#(?!\s*include)|//|/?\*|--|;;|@\w|\[[A-Z]\w*)")
_LONGEST_LINE: Final = 400
_SIGNATURE: Final = 200


class _Found(NamedTuple):
    """A line that begins a definition: offsets of its comment, itself; its indentation and name."""

    start: int
    line: int
    indent: int
    role: Role
    name: str


def with_definitions(text: str, reading: CodeText) -> CodeText:
    """Return a reading with the definitions that keywords show, if it has no named unit.

    Each gives the fact `declares` {role, public}, as those of other languages do.

    Args:
        text: of the file.
        reading: of it.
    """
    if any(unit.symbol for unit in reading.units):
        return reading
    found = [*_definitions(text, reading.language)]
    ends = [*(one.start for one in found[1:]), len(text)]
    units, facts = [], []
    above: list[_Found] = []
    for one, after in zip(found, ends, strict=False):
        while above and above[-1].indent >= one.indent:
            above.pop()
        owners = [outer.name for outer in above if outer.role == "class"]
        is_inner = any(outer.role != "class" for outer in above)
        symbol = "::".join((*owners, one.name)) if not one.name.startswith("::") else one.name
        above.append(one)
        role: Role = "method" if one.role == "function" and owners else one.role
        end = one.start + len(text[one.start : after].rstrip())
        line = text[one.line : _line_end(text, one.line)].strip()
        signature = line.rstrip("{").rstrip()[:_SIGNATURE]
        units.append(Unit(one.start, end, role, symbol, signature))
        if not is_inner:
            values = {"role": role, "public": True}
            facts.append(Fact("declares", one.line, one.line + len(line), symbol, values))
    if not units:
        return reading
    ordered = sorted((*reading.facts, *facts), key=lambda fact: (fact.start, fact.end))
    return replace(reading, units=covering(text, units), facts=tuple(ordered))


def _definitions(text: str, language: str) -> Iterator[_Found]:
    at, above = 0, -1
    for line in text.splitlines(keepends=True):
        plain = line.rstrip()
        if plain and len(plain) <= _LONGEST_LINE:
            matched, role = _matched(plain, language)
            if matched is not None:
                start = at if above < 0 else above
                indent = len(matched["indent"].expandtabs(4))
                name = matched["name"] or matched["other"]
                name = name.replace(".", "::").replace(":", "::").replace("::::", "::")
                yield _Found(start, at, indent, role, name)
        is_above = bool(plain) and _ABOVE.match(plain) is not None
        above = (at if above < 0 else above) if is_above else -1
        at += len(line)


def _matched(line: str, language: str) -> tuple[re.Match[str] | None, Role]:
    stripped = line.lstrip()
    if stripped.startswith(("#", "//", "*", "/*", "--", ";", '"', "'")):
        return None, "class"
    if (found := _TYPES.match(line)) is not None:
        return found, "class"
    found = _FUNCTIONS.match(line)
    if found is None and language in _OF_LANGUAGES:
        found = _OF_LANGUAGES[language].match(line)
    return found, "function"


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end
