"""Styles and numbering of a Word document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rag_assets.ingest.parsing.office.docx_text import W
from rag_assets.ingest.parsing.pieces import DEEPEST_LEVEL

if TYPE_CHECKING:
    from lxml.etree import _Element

_LONGEST_CHAIN = 20
_BODY_TEXT = 9  # the outline level of body text
_LONGEST_MARKER = 40
_MOST_AS_LETTERS = 26 * 4
_MOST_AS_ROMAN = 3_999
_PLACE = re.compile(r"%([1-9])")
# The names of built-in styles are English, whatever the language of the document.
_HEADING = re.compile(r"heading ([1-9])$")
_CODE = re.compile(r"\b(?:code|preformatted|listing|macro)\b")
_CONTENTS = re.compile(r"(?:toc [1-9]|table of figures)$")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


class ListPlace(NamedTuple):
    """The list and the depth (from 0) of an item; list 0 means no list."""

    number: int
    depth: int


@dataclass(frozen=True, slots=True)
class Style:
    """The properties of a paragraph style that are needed here, including inherited ones.

    Attributes:
        name: name of the style, in lower case.
        level: level of the heading, else 0.
        place: the list that paragraphs of this style are items of.
        is_code: whether the style is for source code.
    """

    name: str = ""
    level: int = 0
    place: ListPlace | None = None
    is_code: bool = False

    @property
    def is_title(self) -> bool:
        """Return whether the style is for the document's title."""
        return self.name == "title"

    @property
    def is_contents(self) -> bool:
        """Return whether the style is for a line of a table of contents."""
        return _CONTENTS.match(self.name) is not None


class Styles:
    """The paragraph styles of a document; empty if the document has no part with styles."""

    def __init__(self, root: _Element | None) -> None:
        found = [] if root is None else root.iter(f"{W}style")
        self._elements = {element.get(f"{W}styleId", ""): element for element in found}
        self._known: dict[str, Style] = {}

    def of(self, style_id: str) -> Style:
        """Return the style with this id; a style without properties if there is none."""
        if style_id not in self._known:
            self._known[style_id] = self._resolve_style(style_id)
        return self._known[style_id]

    def _resolve_style(self, style_id: str) -> Style:
        names: list[str] = []
        levels: list[int] = []
        places: list[ListPlace] = []
        for _ in range(_LONGEST_CHAIN):
            element = self._elements.get(style_id)
            if element is None:
                break
            names.append(_value(element.find(f"{W}name")).lower())
            properties = element.find(f"{W}pPr")
            levels += _levels(names[-1], properties)
            places += filter(None, [list_place(properties)])
            style_id = _value(element.find(f"{W}basedOn"))
        return Style(
            names[0] if names else "",
            levels[0] if levels else 0,
            places[0] if places else None,
            any(map(_CODE.search, names)),
        )


def _levels(name: str, properties: _Element | None) -> list[int]:
    """Return the heading level that a style itself sets, 0 for body text; empty if it sets none."""
    if found := _HEADING.match(name):
        return [min(int(found[1]), DEEPEST_LEVEL)]
    if name == "title":
        return [1]
    level = outline_level(properties)
    return [] if level is None else [level]


def outline_level(properties: _Element | None) -> int | None:
    """Return the heading level in a paragraph's properties: 0 for body text, None if unset."""
    element = properties.find(f"{W}outlineLvl") if properties is not None else None
    if element is None:
        return None
    level = _integer(element, _BODY_TEXT)
    return 0 if level >= _BODY_TEXT else min(level + 1, DEEPEST_LEVEL)


def list_place(properties: _Element | None) -> ListPlace | None:
    """Return the list that a paragraph's properties refer to, if any."""
    numbered = properties.find(f"{W}numPr") if properties is not None else None
    if numbered is None:
        return None
    depth = _integer(numbered.find(f"{W}ilvl"), 0)
    return ListPlace(_integer(numbered.find(f"{W}numId"), 0), max(0, min(depth, 8)))


class Numbering:
    """Counts the items of a document's lists; items must be requested in document order."""

    def __init__(self, root: _Element | None) -> None:
        self._levels: dict[tuple[int, int], _Element] = {}
        self._lists: dict[int, int] = {}
        self._restarts: dict[int, dict[int, int]] = {}
        self._counts: dict[int, dict[int, int]] = {}
        if root is not None:
            self._read(root)

    def _read(self, root: _Element) -> None:
        for kind in root.iter(f"{W}abstractNum"):
            number = _integer(kind, 0, "abstractNumId")
            for level in kind.iter(f"{W}lvl"):
                self._levels[number, _integer(level, 0, "ilvl")] = level
        for instance in root.iter(f"{W}num"):
            number = _integer(instance, 0, "numId")
            self._lists[number] = _integer(instance.find(f"{W}abstractNumId"), 0)
            self._restarts[number] = {
                _integer(override, 0, "ilvl"): _integer(start, 1)
                for override in instance.iter(f"{W}lvlOverride")
                if (start := override.find(f"{W}startOverride")) is not None
            }

    def marker(self, place: ListPlace) -> str:
        """Count a list's next item; return the number printed before it, or "-" for a bullet."""
        kind = self._lists.get(place.number, -1)
        level = self._levels.get((kind, place.depth))
        if level is None or self._format(kind, place.depth) == "bullet":
            return "-"
        if self._format(kind, place.depth) == "none":
            return ""
        self._count(kind, place)
        pattern = _value(level.find(f"{W}lvlText"))[:_LONGEST_MARKER]
        return _PLACE.sub(lambda found: self._format_marker(kind, int(found[1]) - 1), pattern)

    def _count(self, kind: int, place: ListPlace) -> None:
        counts = self._counts.setdefault(kind, {})
        restart = self._restarts.get(place.number, {}).pop(place.depth, None)
        before = restart - 1 if restart is not None else counts.get(place.depth)
        counts[place.depth] = self._start(kind, place.depth) if before is None else before + 1
        for deeper in range(place.depth + 1, 10):
            counts.pop(deeper, None)

    def _format_marker(self, kind: int, depth: int) -> str:
        count = self._counts.get(kind, {}).get(depth)
        shown = self._start(kind, depth) if count is None else count
        return _format_number(shown, self._format(kind, depth))

    def _start(self, kind: int, depth: int) -> int:
        level = self._levels.get((kind, depth))
        return _integer(level.find(f"{W}start"), 1) if level is not None else 1

    def _format(self, kind: int, depth: int) -> str:
        level = self._levels.get((kind, depth))
        return _value(level.find(f"{W}numFmt")) if level is not None else ""


def _format_number(count: int, style: str) -> str:
    shown = str(count)
    if style.endswith("Letter") and 0 < count <= _MOST_AS_LETTERS:
        shown = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
    elif style.endswith("Roman") and 0 < count <= _MOST_AS_ROMAN:
        shown = _format_roman(count)
    return shown.upper() if style.startswith("upper") else shown


def _format_roman(count: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (count // value)
        count %= value
    return text


def _value(element: _Element | None) -> str:
    return element.get(f"{W}val", "") if element is not None else ""


def _integer(element: _Element | None, default: int, attribute: str = "val") -> int:
    try:
        return int(element.get(f"{W}{attribute}", "")[:9]) if element is not None else default
    except ValueError:
        return default
