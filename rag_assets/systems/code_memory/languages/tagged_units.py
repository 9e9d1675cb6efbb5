"""Units and facts that follow from a text's tags: its definitions, and the supertypes of its types.

Used for languages without their own reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tags import (
    DefinitionKind,
    TagDefinition,
    Tags,
    TagSupertype,
)
from rag_assets.systems.code_memory.languages.tree import cover_text
from rag_assets.systems.code_memory.symbols.model import CodeText, Role, Unit
from rag_assets.systems.code_memory.symbols.names import short_name
from rag_assets.systems.code_memory.symbols.naming import SCOPED

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
_TYPES: Final = frozenset({"class", "module", "type"})
"""Kinds of definitions that may have, or be, supertypes."""
_LONGEST_EVIDENCE: Final = 200
"""Maximum characters of evidence before, and after, the start of a supertype."""
_ATTACHED_LINE: Final = re.compile(
    r"[ \t]*(?:#(?!\s*include)|//|/?\*|--|;;|@\w|template\s*<|\[[A-Z]\w*|\(\*|%)"
)
"""Matches a line that belongs to the definition below it: a comment, annotation or attribute."""
_CLOSING_LINES: Final = re.compile(
    r"(?:[ \t]*\n)*(?:[ \t]*(?:end|fi|done|esac|[)\]}]+[;,]?)[ \t]*(?:\n|$))+"
)
"""Matches lines that only close the blocks around a definition; they never form a chunk."""
_SIGNATURE: Final = 200
"""Maximum characters of a signature; a longer signature is cut off."""


def with_definitions(text: str, reading: CodeText, tags: Tags) -> CodeText:
    """Add the definitions of a tag query to a reading that has no named units.

    If any unit of the reading has a symbol, it is returned unchanged. Each definition also yields a
    fact `declares` {role}, and each supertype `extends`, `implements` or `uses_trait` {name}.

    Args:
        reading: the units and facts that were read without the query.
    """
    shown = [definition for definition in tags.definitions if not definition.is_local]
    if not shown or any(unit.symbol for unit in reading.units):
        return reading
    facts = [*map(_declaration_fact, shown), *_iter_supertype_facts(text, tags)]
    ordered = sorted((*reading.facts, *facts), key=lambda fact: (fact.start, fact.end))
    units = cover_text(text, [*_iter_units_of_definitions(text, shown)], ())
    return replace(reading, units=units, facts=tuple(ordered))


def _iter_units_of_definitions(text: str, shown: Sequence[TagDefinition]) -> Iterator[Unit]:
    """Yield a unit for each definition; the unit of a type ends where its first member starts."""
    starts = [_start_with_comment(text, tag_definition.start) for tag_definition in shown]
    at = 0
    for index, tag_definition in enumerate(shown):
        start = max(starts[index], at)
        after = starts[index + 1] if index + 1 < len(shown) else len(text)
        holds = index + 1 < len(shown) and shown[index + 1].start < tag_definition.end
        end = start + len(text[start : min(tag_definition.end, after)].rstrip())
        end = _closing_end(text, end, after)
        if end <= start:
            continue
        at = end
        is_alone = tag_definition.kind not in _SMALL and (tag_definition.kind != "module" or holds)
        role = _ROLES[tag_definition.kind]
        yield Unit(
            start, end, role, tag_definition.name, _first_line(text, tag_definition), alone=is_alone
        )


def _closing_end(text: str, end: int, after: int) -> int:
    """Return the end of a definition including the lines that close the blocks around it."""
    line = text.find("\n", end, after)
    if line < 0 or text[end:line].strip():
        return end
    closing = _CLOSING_LINES.match(text, line + 1, after)
    return end if closing is None else end + len(text[end : closing.end()].rstrip())


def _start_with_comment(text: str, start: int) -> int:
    """Return the start of a definition's line, or of the comments and annotations above it."""
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip():
        return start
    first = line
    while first > 0:
        above = text.rfind("\n", 0, first - 1) + 1
        if _ATTACHED_LINE.match(text, above, first) is None:
            break
        first = above
    return first


def _first_line(text: str, tag_definition: TagDefinition) -> str:
    end = text.find("\n", tag_definition.start, tag_definition.end)
    line = text[tag_definition.start : tag_definition.end if end < 0 else end].strip()
    return line.rstrip("{").rstrip()[:_SIGNATURE]


def _declaration_fact(tag_definition: TagDefinition) -> Fact:
    values: dict[str, object] = {"role": _ROLES[tag_definition.kind]}
    last = tag_definition.name.rpartition("::")[2].lower()
    if tag_definition.kind in _TYPES and last != short_name(tag_definition.name):
        # Code that uses the type may leave out the namespace in its short name.
        values["called"] = ["", last]
    return Fact("declares", tag_definition.start, tag_definition.end, tag_definition.name, values)


def _iter_supertype_facts(text: str, tags: Tags) -> Iterator[Fact]:
    """Yield a fact for each supertype of a type that other files can use."""
    around: list[TagDefinition] = []
    following = 0
    for supertype in tags.supertypes:
        while (
            following < len(tags.definitions)
            and tags.definitions[following].start <= supertype.start
        ):
            _drop_ended(around, tags.definitions[following].start)
            around.append(tags.definitions[following])
            following += 1
        _drop_ended(around, supertype.start)
        if around and around[-1].kind in _TYPES and not around[-1].is_local:
            span = _evidence_span(text, supertype)
            yield Fact(supertype.kind, *span, around[-1].name, {"name": SCOPED + supertype.name})


def _drop_ended(around: list[TagDefinition], at: int) -> None:
    while around and around[-1].end <= at:
        around.pop()


def _evidence_span(text: str, tag_supertype: TagSupertype) -> tuple[int, int]:
    """Return the span of the line with a supertype, without surrounding white space."""
    first = (
        text.rfind("\n", max(0, tag_supertype.start - _LONGEST_EVIDENCE), tag_supertype.start) + 1
    )
    first = first or max(0, tag_supertype.start - _LONGEST_EVIDENCE)
    line = text[first : tag_supertype.start + _LONGEST_EVIDENCE].partition("\n")[0]
    return first + len(line) - len(line.lstrip()), first + len(line.rstrip())
