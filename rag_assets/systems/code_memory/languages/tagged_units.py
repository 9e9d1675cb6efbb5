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
)
from rag_assets.systems.code_memory.languages.tree import cover_text
from rag_assets.systems.code_memory.symbols.model import CodeText, Role, Unit
from rag_assets.systems.code_memory.symbols.names import get_short_name
from rag_assets.systems.code_memory.symbols.naming import SCOPED_PREFIX

_ROLES: Final[Mapping[DefinitionKind, Role]] = {
    "class": "class",
    "module": "class",
    "function": "function",
    "method": "method",
    "signature": "method",
    "type": "type",
    "constant": "definition",
}
_JOINED_KINDS: Final = frozenset({"constant", "signature"})
"""Kinds of definitions that share a chunk with their neighbours."""
_TYPES: Final = frozenset({"class", "module", "type"})
"""Kinds of definitions that may have, or be, supertypes."""
_MAX_EVIDENCE_CHARACTERS: Final = 200
"""Maximum characters of evidence before, and after, the start of a supertype."""
_ATTACHED_LINE: Final = re.compile(
    r"[ \t]*(?:#(?!\s*include)|//|/?\*|--|;;|@\w|template\s*<|\[[A-Z]\w*|\(\*|%)"
)
"""Matches a line that belongs to the definition below it: a comment, annotation or attribute."""
_KEYWORDS: Final = re.compile(r"[ \t]*(?:[a-z]{1,20}[ \t]+){1,4}")
"""Matches words that belong to the definition after them: `local`, `export`."""
_CLOSING_LINES: Final = re.compile(
    r"(?:[ \t]*\n)*(?:[ \t]*(?:end|fi|done|esac|[)\]}]+[;,]?)[ \t]*(?:\n|$))+"
)
"""Matches lines that only close the blocks around a definition; they never form a chunk."""
_MAX_SIGNATURE_CHARACTERS: Final = 200
"""Maximum characters of a signature; a longer signature is cut off."""


def add_definitions(text: str, reading: CodeText, tags: Tags) -> CodeText:
    """Return `reading` extended by the definitions of a tag query.

    If any unit of `reading` has a symbol, `reading` is returned unchanged. Each definition also
    yields a fact `declares` {role}, each supertype `extends`, `implements` or `uses_trait` {name}.

    Args:
        reading: the units and facts that were read without the query.
    """
    shown_definitions = [definition for definition in tags.definitions if not definition.is_local]
    if not shown_definitions or any(unit.symbol for unit in reading.units):
        return reading
    facts = [*map(_build_declaration_fact, shown_definitions), *_iter_supertype_facts(text, tags)]
    units = cover_text(text, [*_iter_units_of_definitions(text, shown_definitions)], ())
    return replace(reading, units=units).add_facts(facts)


def _iter_units_of_definitions(text: str, definitions: Sequence[TagDefinition]) -> Iterator[Unit]:
    """Yield a unit for each definition; the unit of a type ends where its first member starts."""
    starts = [_find_start_with_comment(text, definition.start) for definition in definitions]
    at = 0
    for index, definition in enumerate(definitions):
        start = max(starts[index], at)
        after = starts[index + 1] if index + 1 < len(definitions) else len(text)
        holds = index + 1 < len(definitions) and definitions[index + 1].start < definition.end
        end = start + len(text[start : min(definition.end, after)].rstrip())
        end = _find_closing_end(text, end, after)
        if end <= start:
            continue
        at, kind = end, definition.kind
        is_alone = kind not in _JOINED_KINDS and (kind != "module" or holds)
        line = text[definition.start : definition.end].partition("\n")[0].strip()
        signature = line.rstrip("{").rstrip()[:_MAX_SIGNATURE_CHARACTERS]
        yield Unit(start, end, _ROLES[kind], definition.name, signature, alone=is_alone)


def _find_closing_end(text: str, end: int, after: int) -> int:
    """Return the end of a definition, after the lines that close the blocks around it."""
    line = text.find("\n", end, after)
    if line < 0 or text[end:line].strip():
        return end
    closing = _CLOSING_LINES.match(text, line + 1, after)
    return end if closing is None else end + len(text[end : closing.end()].rstrip())


def _find_start_with_comment(text: str, start: int) -> int:
    """Return the start of a definition's line, or of the comments and annotations above it."""
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip() and _KEYWORDS.fullmatch(text, line, start) is None:
        return start
    first = line
    while first > 0:
        above = text.rfind("\n", 0, first - 1) + 1
        if _ATTACHED_LINE.match(text, above, first) is None:
            break
        first = above
    return first


def _build_declaration_fact(definition: TagDefinition) -> Fact:
    values: dict[str, object] = {"role": _ROLES[definition.kind]}
    last = definition.name.rpartition("::")[2].lower()
    if definition.kind in _TYPES and last != get_short_name(definition.name):
        # Code that uses the type may leave out the namespace in its short name.
        values["called"] = ["", last]
    return Fact("declares", definition.start, definition.end, definition.name, values)


def _iter_supertype_facts(text: str, tags: Tags) -> Iterator[Fact]:
    """Yield a fact for each supertype of a type that other files can use."""
    around: list[TagDefinition] = []
    following = [*reversed(tags.definitions)]
    for supertype in tags.supertypes:
        while following and following[-1].start <= supertype.start:
            _drop_ended(around, following[-1].start)
            around.append(following.pop())
        _drop_ended(around, supertype.start)
        if around and around[-1].kind in _TYPES and not around[-1].is_local:
            span = _get_evidence_span(text, supertype.start)
            yield Fact(
                supertype.kind, *span, around[-1].name, {"name": SCOPED_PREFIX + supertype.name}
            )


def _drop_ended(around: list[TagDefinition], at: int) -> None:
    while around and around[-1].end <= at:
        around.pop()


def _get_evidence_span(text: str, at: int) -> tuple[int, int]:
    """Return the span of the line with a supertype, without surrounding white space."""
    low = max(0, at - _MAX_EVIDENCE_CHARACTERS)
    first = text.rfind("\n", low, at) + 1 or low
    line = text[first : at + _MAX_EVIDENCE_CHARACTERS].partition("\n")[0]
    return first + len(line) - len(line.lstrip()), first + len(line.rstrip())
