"""Marks that the text of a PDF page lacks: states of boxes, and what separates raised numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING

from rag_assets.ingest.parsing.blocks import Piece, clean, get_power_mark

if TYPE_CHECKING:
    from liteparse import FormField, ParsedPage, WordBox
    from pypdfium2 import PdfPage, PdfTextPage
    from pypdfium2.raw import FS_RECTF

_CONTEXT_LENGTHS = (24, 12, 6, 3)
_CELL_BOUNDARY = "|"


def _insert_marks(
    pieces: list[Piece], text: str, marks: Sequence[tuple[int | None, str]]
) -> tuple[list[Piece], list[bool]]:
    """Insert marks into the pieces of a page; also return which marks have a clear place.

    Args:
        text: the visible characters of the page; its lines may have another order.
        marks: offsets in the text, if known, and what to insert there. A mark that starts with a
            blank follows the character before it.
    """
    places = [
        (number, offset)
        for number, piece in enumerate(pieces)
        for offset, character in enumerate(piece.text)
        if not character.isspace() and character != _CELL_BOUNDARY
    ]
    visible = "".join(pieces[number].text[offset] for number, offset in places)
    insertions: list[tuple[int, int, str]] = []
    are_placed: list[bool] = []
    for start, mark in marks:
        for length in _CONTEXT_LENGTHS:
            if start is None:
                break
            before, after = text[max(start - length, 0) : start], text[start : start + length]
            if before + after and visible.count(before + after) == 1:
                is_behind = mark.startswith(" ")
                number, offset = places[visible.index(before + after) + len(before) - is_behind]
                insertions.append((number, offset + is_behind, mark))
                break
        are_placed.append(len(insertions) > sum(are_placed))
    changed = list(pieces)
    insertions.sort(key=itemgetter(0, 1))
    for number, offset, mark in reversed(insertions):
        line = changed[number].text
        changed[number] = replace(changed[number], text=line[:offset] + mark + line[offset:])
    return changed, are_placed


_BOXES = frozenset({"checkbox", "radio"})
_TICKED = "\N{BALLOT BOX WITH X}"
_NOT_TICKED = "\N{BALLOT BOX}"


def add_boxes(pieces: list[Piece], page: ParsedPage) -> list[Piece]:
    """Return the pieces of a page with the states of its check boxes and radio buttons.

    A state is added to the nearest text on its line, else to a new paragraph with the field's name.
    """
    boxes = [field for field in page.form_fields or [] if field.type in _BOXES]
    if not boxes:
        return pieces
    words = [word for item in page.text_items for word in item.words]
    visible = ["".join(word.text.split()).replace(_CELL_BOUNDARY, "") for word in words]
    ends = list(accumulate(map(len, visible)))
    marks = [_place_box(box, words, ends) for box in boxes]
    pieces, are_placed = _insert_marks(pieces, "".join(visible), marks)
    return pieces + [
        Piece(
            "paragraph",
            clean(f"{mark.strip()} {box.alternate_name or box.name or ''}"),
            page=page.page_num,
        )
        for box, (_, mark), is_placed in zip(boxes, marks, are_placed, strict=True)
        if not is_placed
    ]


def _place_box(box: FormField, words: list[WordBox], ends: list[int]) -> tuple[int | None, str]:
    """Return the state of a box, and its offset in the text, whose words end at `ends`."""
    state = _TICKED if box.checked else _NOT_TICKED
    if box.rect is None:
        return None, state
    middle = box.rect.y + box.rect.height / 2
    left, right = box.rect.x, box.rect.x + box.rect.width
    on_line = [
        (word, end)
        for word, end in zip(words, ends, strict=True)
        if 0 <= middle - word.y <= word.height
    ]
    before = [(left - word.x - word.width, end) for word, end in on_line if word.x < left]
    after = [(word.x - right, end - len(word.text)) for word, end in on_line if word.x >= left]
    label = min(after, default=None)
    if label and label[0] <= max(min(before)[0] if before else inf, 2 * box.rect.width):
        return label[1], f"{state} "
    return (min(before)[1], f" {state}") if before else (None, state)


_AFTER_OTHERS = re.compile(r"\S[0-9]")
_RAISED = re.compile(r"[+\-\u2212\u2013]?[0-9]")
_RAISED_CHARACTERS = frozenset("0123456789+-\u2212\u2013,")
_NOTE_NUMBERS = re.compile(r"[0-9]{1,3}(?:[,\u2013-][0-9]{1,3})*")
_FIRST_NUMBER = re.compile(r"^\s*([0-9]{1,3})(?=[\s.)])", re.MULTILINE)
_LAST_WORD = re.compile(r"[^\W\d_]*$")
_MAX_UNIT_LENGTH = 3  # as in km2 or mol-1
_ENDS_OF_PHRASES = frozenset('.,;:!?"\u2019\u201d\u00bb')
_MAX_RAISED_SIZE = 0.85
_MIN_RISE = 0.2
_MAX_GAP = 0.35
_MAX_NOTE_SIZE = 0.95
_MAX_MARKS = 1_000
"""Maximum raised numbers of a page; each is searched in the text of the page."""


def may_have_raised_numbers(pieces: Sequence[Piece]) -> bool:
    """Return whether a number directly follows another character anywhere on a page."""
    return any(_AFTER_OTHERS.search(piece.text) for piece in pieces)


def mark_raised_numbers(pieces: list[Piece], page: PdfPage, text_page: PdfTextPage) -> list[Piece]:
    """Return the pieces of a page with marks before raised numbers: 10^6, and "2019 5" of a note.

    Args:
        page, text_page: the page in pdfium, which knows the place and height of each character.
    """
    return _insert_marks(pieces, *_find_raised_numbers(page, text_page))[0]


def _find_raised_numbers(
    page: PdfPage, text_page: PdfTextPage
) -> tuple[str, list[tuple[int | None, str]]]:
    """Return the visible text of a page, and the marks of its raised numbers.

    A power has "^" before it, as in 10^6, and the number of a note has a blank, as in "2019 5". A
    number is a note's if it is a link, or if a smaller line below it starts with the number, or if
    it follows a word or punctuation.
    """
    text = "".join(read_characters(text_page))
    visible = [index for index, character in enumerate(text) if not character.isspace()]
    notes = [(m[1], _get_box(text_page, m.start(1))) for m in _FIRST_NUMBER.finditer(text)]
    marks: list[tuple[int | None, str]] = []
    end = 0
    for offset, (last, start) in enumerate(pairwise(visible), start=1):
        if start < end or text[start - 1] == " " or not _RAISED.match(text, start):
            continue
        base, box = _get_box(text_page, last), _get_box(text_page, start)
        end = _find_raised_end(text_page, text, start, base)
        raised = text[start:end].rstrip(",")
        if not raised:
            continue
        is_note = _is_link(page, box) or any(
            number == raised
            and note.top < box.bottom
            and _get_height(note) <= _MAX_NOTE_SIZE * _get_height(base)
            for number, note in notes
        )
        if mark := _get_mark(text[: last + 1], raised, is_note=is_note):
            marks.append((offset, mark))
        if len(marks) == _MAX_MARKS:
            break
    return "".join(text[index] for index in visible), marks


def _find_raised_end(text_page: PdfTextPage, text: str, start: int, base: FS_RECTF) -> int:
    """Return the end of the raised number at `start`; `start` itself if no number is raised."""
    end, after = start, base
    while end < len(text) and (end == start or text[end] in _RAISED_CHARACTERS):
        box = _get_box(text_page, end)
        if not _is_raised(box, base, after):
            break
        end, after = end + 1, box
    return end


def _get_mark(before: str, raised: str, *, is_note: bool) -> str:
    """Return what separates a raised number from the text before it; "" if it can stay joined."""
    if _NOTE_NUMBERS.fullmatch(raised):
        word = _LAST_WORD.search(before[-_MAX_UNIT_LENGTH - 1 :])
        is_list = not raised.isdecimal()
        follows_word = word is not None and len(word[0]) > _MAX_UNIT_LENGTH
        if is_note or is_list or follows_word or before[-1] in _ENDS_OF_PHRASES:
            return " "
    return get_power_mark(before[-1:], raised)


def read_characters(text_page: PdfTextPage) -> str | list[str]:
    """Return the characters of a page, one for each index of pdfium."""
    from pypdfium2.raw import FPDFText_GetUnicode

    text: str = text_page.get_text_range()
    if len(text) == text_page.count_chars():
        return text
    return [chr(FPDFText_GetUnicode(text_page, i)) for i in range(text_page.count_chars())]


def _get_box(text_page: PdfTextPage, index: int) -> FS_RECTF:
    """Return the box of a character, whose height depends only on the font and its size."""
    from pypdfium2.raw import FS_RECTF, FPDFText_GetLooseCharBox

    box = FS_RECTF()
    FPDFText_GetLooseCharBox(text_page, index, box)
    return box


def _get_height(box: FS_RECTF) -> float:
    return float(box.top - box.bottom)


def _is_raised(box: FS_RECTF, base: FS_RECTF, after: FS_RECTF) -> bool:
    """Return whether a character is smaller and higher than the base, and close to the last one.

    Args:
        after: the box of the character before it, which may be the base.
    """
    height = _get_height(base)
    gap = box.left - after.right
    return (
        0 < _get_height(box) <= _MAX_RAISED_SIZE * height
        and _MIN_RISE * height <= box.bottom - base.bottom < height
        and abs(gap) <= _MAX_GAP * height
    )


def _is_link(page: PdfPage, box: FS_RECTF) -> bool:
    from pypdfium2.raw import FPDFLink_GetLinkAtPoint

    return bool(
        FPDFLink_GetLinkAtPoint(page, (box.left + box.right) / 2, (box.bottom + box.top) / 2)
    )
