"""Single-file components of Vue and Svelte, with scripts in JavaScript or TypeScript."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.definitions import (
    MAX_WHOLE_TYPE_CHARACTERS,
    Reading,
    read_definitions,
)
from rag_assets.systems.code_memory.languages.javascript import Jsx, Tsx, TypeScript
from rag_assets.systems.code_memory.languages.tree import cover_text
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit, sort_facts

_TAG = re.compile(r"<!--|<(/?)(script|style|template|svelte:head)(?=[\s/>])", re.IGNORECASE)
_END_TAGS = {
    "script": re.compile(r"</script\s{0,80}>", re.IGNORECASE),
    "style": re.compile(r"</style\s{0,80}>", re.IGNORECASE),
}
_STOP = re.compile(r"[\"'>]")
_ATTRIBUTE = re.compile(r"([^\s\"'=<>/]+)(?:\s{0,80}=\s{0,80}(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")
_MAX_TAG_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class ScriptBlock:
    """A script block of a component file.

    Attributes:
        start, end: offsets of the block with its tags.
        first, last: offsets of the content between the tags.
        attributes: the attributes of its tag; "" for attributes without a value.
    """

    start: int
    end: int
    first: int
    last: int
    attributes: dict[str, str]


def _find_scripts(text: str) -> Iterator[ScriptBlock]:
    """Yield the script blocks at the top level of a file; an unclosed block is ignored."""
    at = depth = 0
    while (tag := _TAG.search(text, at)) is not None:
        if tag[0] == "<!--":
            at = text.find("-->", tag.end())
            if at < 0:
                return
            continue
        first = _find_tag_end(text, tag.end())
        if first < 0:
            return
        name, at = tag[2].lower(), first
        if name not in _END_TAGS:
            is_empty = text[first - 2] == "/"
            depth = max(0, depth - 1) if tag[1] else depth + (not is_empty)
            continue
        if tag[1] or text[first - 2] == "/":
            continue
        end = _END_TAGS[name].search(text, first)
        if end is None:
            return
        at = end.end()
        if name == "script" and depth == 0:
            attribute_matches = _ATTRIBUTE.finditer(
                text, tag.end(), min(first - 1, tag.end() + _MAX_TAG_CHARACTERS)
            )
            attributes = {
                match[1].lower(): (match[2] or "").strip("\"'") for match in attribute_matches
            }
            yield ScriptBlock(tag.start(), at, first, end.start(), attributes)


def _find_tag_end(text: str, at: int) -> int:
    """Return the offset after the `>` that ends a tag, ignoring quoted text; -1 if absent."""
    while (match := _STOP.search(text, at)) is not None:
        if match[0] == ">":
            return match.end()
        at = text.find(match[0], match.end()) + 1
        if at == 0:
            return -1
    return -1


_GRAMMARS = {"ts": TypeScript, "typescript": TypeScript, "tsx": Tsx}
_COMPONENT_NAME = re.compile(
    r"defineOptions\(\s{0,80}\{[^}]{0,400}?\bname\s{0,9}:\s{0,9}[\"']([\w$-]{1,80})"
)


def _read_component(text: str, is_component: Callable[[Mapping[str, str]], bool]) -> CodeText:
    """Read a component file; `is_component` recognizes the script that is the component's body.

    Args:
        is_component: takes the attributes of a script tag.
    """
    units: list[Unit] = []
    facts: list[Fact] = []
    cuts: list[int] = []
    notes: list[str] = []
    for block in _find_scripts(text):
        grammar = _GRAMMARS.get(block.attributes.get("lang", "").lower(), Jsx)
        reading = _shift_reading(
            read_definitions(text[block.first : block.last], grammar), block.first
        )
        if block.attributes.get("src"):
            values = {"name": block.attributes["src"], "names": []}
            facts.append(Fact("imports", block.start, block.first, "", values))
        if is_component(block.attributes):
            reading = _convert_to_component(text, block, reading)
        units += reading.units
        facts += reading.facts
        cuts += reading.cuts
        notes += reading.notes
    return CodeText(cover_text(text, units, sorted(cuts)), sort_facts(facts), tuple(notes))


def _shift_reading(reading: Reading, by: int) -> Reading:
    units = (replace(unit, start=unit.start + by, end=unit.end + by) for unit in reading.units)
    facts = (replace(fact, start=fact.start + by, end=fact.end + by) for fact in reading.facts)
    cuts = (cut + by for cut in reading.cuts)
    return replace(reading, units=tuple(units), facts=tuple(facts), cuts=tuple(cuts))


def _convert_to_component(text: str, block: ScriptBlock, reading: Reading) -> Reading:
    """Return the reading of a component's script, whose definitions become component members."""
    name_match = _COMPONENT_NAME.search(text, block.first, block.last)
    name = "default" if name_match is None else name_match[1]
    own = {fact.symbol for fact in reading.facts if fact.kind == "declares"}
    tag = " ".join(text[block.start : min(block.first, block.start + 300)].split())
    place = block.start, min(block.first, block.start + 200)
    facts = (
        Fact("declares", *place, name, {"role": "export", "exported": True}),
        Fact("exports", *place, "", {"name": "default", "local": name}),
        *_convert_to_member_facts(reading.facts, name, own),
    )
    units = tuple(
        _iter_component_units(text, block, reading.units, Unit(0, 0, "export", name, tag))
    )
    return replace(reading, units=units, facts=facts)


def _convert_to_member_facts(facts: Iterable[Fact], name: str, own: set[str]) -> Iterator[Fact]:
    for fact in facts:
        if fact.kind == "exports":  # It is a property of the component, not a name in the module.
            continue
        values = dict(fact.values)
        if "module" not in values and values.get("name") in own:
            values["name"] = f"{name}.{values['name']}"
        symbol = f"{name}.{fact.symbol}" if fact.symbol else name
        if fact.kind == "imports":
            symbol = ""
        yield replace(fact, symbol=symbol, values=values)


def _iter_component_units(
    text: str, block: ScriptBlock, inner: tuple[Unit, ...], head: Unit
) -> Iterator[Unit]:
    if block.end - block.start <= MAX_WHOLE_TYPE_CHARACTERS or not inner:
        yield replace(head, start=block.start, end=block.end)
        return
    last = inner[0].start
    end = block.start + len(text[block.start : last].rstrip())
    yield replace(head, start=block.start, end=end)
    for unit in inner:
        symbol = f"{head.symbol}.{unit.symbol}" if unit.symbol else head.symbol
        yield replace(unit, symbol=symbol)


read_svelte: Final = partial(
    _read_component,
    is_component=lambda attributes: (
        "module" not in attributes and attributes.get("context") != "module"
    ),
)
read_vue: Final = partial(_read_component, is_component=lambda attributes: "setup" in attributes)
