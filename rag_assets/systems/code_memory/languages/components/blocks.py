"""The script blocks of a component file, found in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TAG = re.compile(r"<!--|<(/?)(script|style|template|svelte:head)(?=[\s/>])", re.IGNORECASE)
_ENDS = {
    "script": re.compile(r"</script\s{0,80}>", re.IGNORECASE),
    "style": re.compile(r"</style\s{0,80}>", re.IGNORECASE),
}
_STOP = re.compile(r"[\"'>]")
_ATTRIBUTE = re.compile(r"([^\s\"'=<>/]+)(?:\s{0,80}=\s{0,80}(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")
_LONG = 4_000


@dataclass(frozen=True, slots=True)
class Block:
    """A script block.

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


def scripts(text: str) -> Iterator[Block]:
    """Yield the script blocks at the top level of a file; an unclosed block is ignored."""
    at = depth = 0
    while (tag := _TAG.search(text, at)) is not None:
        if tag[0] == "<!--":
            at = text.find("-->", tag.end())
            if at < 0:
                return
            continue
        first = _tag_end(text, tag.end())
        if first < 0:
            return
        name, at = tag[2].lower(), first
        if name not in _ENDS:
            depth = max(0, depth + _step(text, tag[1], first))
            continue
        if tag[1] or text[first - 2] == "/":
            continue
        end = _ENDS[name].search(text, first)
        if end is None:
            return
        at = end.end()
        if name == "script" and depth == 0:
            yield Block(tag.start(), at, first, end.start(), _attributes(text, tag.end(), first))


def _step(text: str, closing: str, after: int) -> int:
    if closing:
        return -1
    return 0 if text[after - 2] == "/" else 1


def _tag_end(text: str, at: int) -> int:
    """Return the offset after the `>` that ends a tag, ignoring quoted text; -1 if absent."""
    while (found := _STOP.search(text, at)) is not None:
        if found[0] == ">":
            return found.end()
        at = text.find(found[0], found.end()) + 1
        if at == 0:
            return -1
    return -1


def _attributes(text: str, start: int, end: int) -> dict[str, str]:
    found = _ATTRIBUTE.finditer(text, start, min(end - 1, start + _LONG))
    return {one[1].lower(): (one[2] or "").strip("\"'") for one in found}
