"""The text of one Word paragraph as a reader sees it.

Deleted and hidden text, field codes and comments are not part of it; inserted text is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lxml.etree import _Element

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"

TEXT_BOX = f"{W}txbxContent"
LEFT_OUT = frozenset(
    {f"{W}{name}" for name in ("del", "moveFrom", "delText", "instrText", "pPr", "rPr", "rt")}
    | {f"{_MC}Fallback"}
)
_RUN, _PROPERTIES, _HIDDEN = f"{W}r", f"{W}rPr", f"{W}vanish"
_TEXTS = frozenset({f"{W}t", f"{_M}t"})
_SYMBOL = f"{W}sym"
_CHARACTERS = {
    f"{W}tab": "\t", f"{W}ptab": "\t", f"{W}br": "\n", f"{W}cr": "\n", f"{W}noBreakHyphen": "-",
}  # fmt: skip
_NOTES = {f"{W}footnoteReference": "footnote", f"{W}endnoteReference": "endnote"}
# The range between these two holds characters of symbol fonts, which have no meaning elsewhere.
_SYMBOLS = (range(0x20, 0xD800), range(0xF900, 0x10000))


@dataclass(slots=True)
class Inline:
    """The content of a paragraph.

    Attributes:
        texts: parts of the paragraph's text, in order.
        notes: for each note that the paragraph refers to, its kind, its id and the index of its
            reference in `texts`.
        boxes: text boxes that are anchored in the paragraph.
    """

    texts: list[str] = field(default_factory=list)
    notes: list[tuple[str, str, int]] = field(default_factory=list)
    boxes: list[_Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the whole text, with the author's line breaks."""
        return "".join(self.texts)


def inline(paragraph: _Element) -> Inline:
    """Read the content of a paragraph."""
    found = Inline()
    _collect(paragraph, found)
    return found


def on_one_line(text: str) -> str:
    """Return a text with every run of white space replaced by one space."""
    return " ".join(text.split())


def _collect(node: _Element, found: Inline) -> None:
    for child in node:
        tag = child.tag
        if tag in _TEXTS:
            found.texts.append(child.text or "")
        elif tag in LEFT_OUT or (tag == _RUN and _is_hidden(child)):
            continue
        elif tag in _CHARACTERS:
            found.texts.append(_CHARACTERS[tag])
        elif tag == _SYMBOL:
            found.texts.append(_symbol(child.get(f"{W}char", "")))
        elif tag in _NOTES:
            found.notes.append((_NOTES[tag], child.get(f"{W}id", ""), len(found.texts)))
            found.texts.append("")
        elif tag == TEXT_BOX:
            found.boxes.append(child)
        else:
            _collect(child, found)


def _is_hidden(run: _Element) -> bool:
    if not len(run) or run[0].tag != _PROPERTIES:
        return False
    hidden = run[0].find(_HIDDEN)
    return hidden is not None and hidden.get(f"{W}val") not in {"0", "false", "off"}


def _symbol(code: str) -> str:
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    return chr(number) if any(number in known for known in _SYMBOLS) else ""
