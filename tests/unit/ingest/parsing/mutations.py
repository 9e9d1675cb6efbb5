"""Damage documents as accidents and attackers do, with choices that hypothesis can shrink."""

from __future__ import annotations

import io
import re
import zipfile
from copy import deepcopy
from typing import TYPE_CHECKING, Literal, NamedTuple

from hypothesis import strategies as st

if TYPE_CHECKING:
    from lxml.etree import _Element

Kind = Literal["overwrite", "insert", "delete", "repeat", "move", "cut"]

_KINDS: tuple[Kind, ...] = ("overwrite", "insert", "delete", "repeat", "move", "cut")
_SPOTS = 1 << 16
_LONGEST = 4_096
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TELLING = re.compile(r"(?:document|slide\d|notesSlide\d|sheet\d|sharedStrings|notes)\.xml$")
# What parsers tend to trip over, whatever the format.
_BYTES = (
    b"\x00", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\r",
    b"\n\n", b"\x0b", b"\x1c", b"\xc2\x85", b"\xe2\x80\xa8", b"\xcc\x81",
    b"\xf0\x9f\x91\xa8\xe2\x80\x8d", b"-1", b"0", b"99999999999999999999", b"4294967295",
    b"2147483648", b"1e999", b"NaN", b"\xd9\xa1", b"\xc2\xb2", b'"', b"'", b"<", b">", b"&",
    b"&#0;", b"&#xD800;", b"&#x1F;", b"]]>", b"<!--", b"-->", b"<![CDATA[", b"<!DOCTYPE x>",
    b"</", b"/>", b"{", b"}", b"[", b"]", b"(", b")", b"#", b"# ", b"```", b"~~~", b"---",
    b"===", b"|", b"::", b".. ", b"- ", b"1. ", b"> ", b"\t", b"  ", b"=?utf-8?b?77+9?=",
    b"=?x?q?=FF?=", b"=ED=A0=80", b"charset=", b"boundary=", b"\\", b"%", b"../", b"stream",
    b"endobj", b"0 R", b"obj", b"xref", b"trailer", b"<<", b">>", b"/Kids", b"<w:p>", b"<a:t>",
    b"<row>", b' r="XFD1048576"', b' t="s"', b' w:val="x"',
)  # fmt: skip


class Edit(NamedTuple):
    """A change to a document.

    Attributes:
        kind: of the change.
        at, to: the position, as fractions of the length.
        data: new bytes.
        times: number of repetitions.
    """

    kind: Kind
    at: int
    to: int
    data: bytes
    times: int


# Small numbers come most often: they shall not all be the beginning.
_spots = st.integers(0, _SPOTS - 1).map(lambda number: number * 40_503 % _SPOTS)
edits = st.lists(
    st.builds(
        Edit, st.sampled_from(_KINDS), _spots, _spots,
        st.one_of(st.sampled_from(_BYTES), st.binary(min_size=1, max_size=4)),
        st.one_of(st.just(1), st.integers(2, 300)),
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


def edited(data: bytes, changes: list[Edit]) -> bytes:
    """Apply all changes to a document, in order."""
    for change in changes:
        data = _edited(data, change)
    return data


def edited_tree(data: bytes, changes: list[Edit]) -> bytes:
    """Change the elements of an XML part, which stays well-formed."""
    from lxml import etree

    try:
        root = etree.fromstring(data)
    except etree.XMLSyntaxError:
        return edited(data, changes)
    for change in changes:
        _edit_tree(list(root.iter(etree.Element)), change)
    return etree.tostring(root, encoding="utf-8", xml_declaration=True, standalone=True)


def parts(archive: bytes) -> list[str]:
    """Return the parts of an archive; those with an Office document's text are repeated."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        names = [name for name in opened.namelist() if name.endswith((".xml", ".rels"))]
    telling = [name for name in names if _TELLING.search(name)]
    return telling * (4 * len(names) // len(telling)) + names


def _edit_tree(elements: list[_Element], change: Edit) -> None:
    chosen, other = (elements[spot * len(elements) // _SPOTS] for spot in (change.at, change.to))
    text = _NO_XML.sub("", (change.data * change.times).decode(errors="ignore"))
    above = chosen.getparent()
    match change.kind:
        case "overwrite":
            chosen.text = text
        case "insert" if chosen.attrib:
            names = list(chosen.attrib)
            chosen.set(names[change.to % len(names)], text)
        case "cut":
            chosen.tag = other.tag
        case "delete" if above is not None:
            above.remove(chosen)
        case "repeat" if above is not None:
            at = above.index(chosen)
            above[at:at] = [deepcopy(chosen) for _ in range(min(change.times, 50))]
        case "move" if chosen not in {other, *other.iterancestors()}:
            other.insert(0, chosen)
        case _:
            chosen.clear()


def _edited(data: bytes, change: Edit) -> bytes:
    start = change.at * (len(data) + 1) // _SPOTS
    end = min(len(data), start + change.to % _LONGEST)
    given = change.data * change.times
    match change.kind:
        case "overwrite":
            return data[:start] + given + data[start + len(given) :]
        case "insert":
            return data[:start] + given + data[start:]
        case "delete":
            return data[:start] + data[end:]
        case "repeat":
            return data[:start] + data[start:end] * min(change.times, 50) + data[end:]
        case "move":
            rest = data[:start] + data[end:]
            at = change.to * (len(rest) + 1) // _SPOTS
            return rest[:at] + data[start:end] + rest[at:]
        case "cut":
            return data[:start]
