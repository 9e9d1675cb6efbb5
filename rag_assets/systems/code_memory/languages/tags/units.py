"""Units and `declares` facts for the definitions that a tag query finds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions.layout import covered
from rag_assets.systems.code_memory.languages.tags.reading import (
    DefinitionKind,
    TagDefinition,
    Tags,
)
from rag_assets.systems.code_memory.symbols.model import CodeText, Role, Unit

_ROLES: Final[Mapping[DefinitionKind, Role]] = {
    "class": "class",
    "module": "class",
    "function": "function",
    "method": "method",
    "signature": "method",
    "type": "type",
    "constant": "definition",
}
_SMALL: Final = frozenset({"constant", "signature"})
"""Kinds of definitions that share a chunk with their neighbours."""
_ABOVE: Final = re.compile(
    r"[ \t]*(?:#(?!\s*include)|//|/?\*|--|;;|@\w|template\s*<|\[[A-Z]\w*|\(\*|%)"
)
_CLOSING: Final = re.compile(
    r"(?:[ \t]*\n)*(?:[ \t]*(?:end|fi|done|esac|[)\]}]+[;,]?)[ \t]*(?:\n|$))+"
)
"""Matches lines that only close the blocks around a definition; they never form a chunk alone."""
_SIGNATURE: Final = 200
"""Maximum characters of a signature; a longer signature is cut off."""


def with_definitions(text: str, reading: CodeText, tags: Tags) -> CodeText:
    """Add the definitions of a tag query to a reading that has no named units.

    Any other reading is returned unchanged. As in other languages, each definition also yields a
    fact `declares` {role, public, what}.

    Args:
        reading: the units and facts that were read from the text without the query.
        tags: the result of the query on the text.
    """
    shown = [one for one in tags.definitions if not one.is_local]
    if not shown or any(unit.symbol for unit in reading.units):
        return reading
    facts = [_declared(one) for one in shown]
    ordered = sorted((*reading.facts, *facts), key=lambda fact: (fact.start, fact.end))
    units = covered(text, [*_units(text, shown)], ())
    return replace(reading, units=units, facts=tuple(ordered))


def _units(text: str, shown: Sequence[TagDefinition]) -> Iterator[Unit]:
    """Yield a unit for each definition; the unit of a type ends where its first member starts."""
    starts = [_with_comment(text, one.start) for one in shown]
    at = 0
    for index, one in enumerate(shown):
        start = max(starts[index], at)
        after = starts[index + 1] if index + 1 < len(shown) else len(text)
        holds = index + 1 < len(shown) and shown[index + 1].start < one.end
        end = start + len(text[start : min(one.end, after)].rstrip())
        end = _closing_end(text, end, after)
        if end <= start:
            continue
        at = end
        is_alone = one.kind not in _SMALL and (one.kind != "module" or holds)
        role = _ROLES[one.kind]
        yield Unit(start, end, role, one.name, _signature(text, one), alone=is_alone)


def _closing_end(text: str, end: int, after: int) -> int:
    """Return the end of a definition including the lines that close the blocks around it."""
    line = text.find("\n", end, after)
    if line < 0 or text[end:line].strip():
        return end
    found = _CLOSING.match(text, line + 1, after)
    return end if found is None else end + len(text[end : found.end()].rstrip())


def _with_comment(text: str, start: int) -> int:
    """Return the start of a definition's line, or of comments and annotations directly above it."""
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip():
        return start
    first = line
    while first > 0:
        above = text.rfind("\n", 0, first - 1) + 1
        if _ABOVE.match(text, above, first) is None:
            break
        first = above
    return first


def _signature(text: str, one: TagDefinition) -> str:
    """Return the first line of a declaration."""
    end = text.find("\n", one.start, one.end)
    line = text[one.start : one.end if end < 0 else end].strip()
    return line.rstrip("{").rstrip()[:_SIGNATURE]


def _declared(one: TagDefinition) -> Fact:
    values = {"role": _ROLES[one.kind], "what": one.kind, "public": True}
    return Fact("declares", one.start, one.end, one.name, values)
