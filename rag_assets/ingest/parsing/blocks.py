"""Assemble a text and its blocks from pieces; clean headings, titles and rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rag_assets.ingest.parsing.model import Block, BlockKind
from rag_assets.ingest.parsing.options import ParseLimits

_MAX_HEADING_LENGTH = 300


class Outline:
    """The headings read so far; it gives the heading path of each new heading and block."""

    def __init__(self) -> None:
        self._path: list[tuple[int, str]] = []
        self._names: tuple[str, ...] = ()

    def enter(self, level: int, name: str) -> tuple[str, ...]:
        """Add a heading, and return its path, which ends with the heading's own name."""
        self._path = [(above, title) for above, title in self._path if above < level]
        self._path.append((level, name))
        # All blocks below a heading share one tuple, since a long document has many blocks.
        self._names = tuple(title for _, title in self._path)
        return self._names

    @property
    def path(self) -> tuple[str, ...]:
        """Return the headings above the next block, outermost first."""
        return self._names


def shorten_heading(text: str) -> str:
    """Return a heading on one line, shortened because each block below it repeats it."""
    name = " ".join(text[: 8 * _MAX_HEADING_LENGTH].split())
    return name if len(name) <= _MAX_HEADING_LENGTH else name[: _MAX_HEADING_LENGTH - 1] + "…"


def find_first_title(blocks: Iterable[Block]) -> str | None:
    """Return the text of the first heading of level 1 or, without one, of the first heading."""
    headings = [block for block in blocks if block.kind == "heading" and block.heading_path[-1]]
    first = next(
        (block for block in headings if block.level == 1), headings[0] if headings else None
    )
    return first.heading_path[-1] if first else None


_MIN_TITLE_LENGTH = 3
_NO_TITLE = re.compile(
    r"untitled|no title|\(anonymous\)|unspecified|document ?\d*$|slide \d+$|microsoft \w+ -"
    r"|.*\.(?:docx?|pptx?|xlsx?|pdf|tex|dvi|indd|qxd|fm|ps|odt|html?|md|rtf|txt)$"
    r"|\S*[/\\_]\S*$|[^A-Za-z\u00c0-\uffff]*$",
    re.IGNORECASE,
)


def clean_property_title(title: str) -> str | None:
    """Return the title from a document's properties; None if a program seems to have set it."""
    name = shorten_heading(title.replace("\0", ""))
    return None if len(name) < _MIN_TITLE_LENGTH or _NO_TITLE.match(name) else name


_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_MIN_COLUMNS = 2
_MAX_REPEATED_LENGTH = 300


def format_row(cells: Sequence[str]) -> str:
    """Return cells on one line, such as `a | b |  | d`, without empty cells at the end."""
    return " | ".join(cells).rstrip(" |")


def add_cell(cells: list[str], text: str, columns: int, width: int) -> None:
    """Append a cell that spans several columns, then empty cells up to the width of the table."""
    cells.append(text)
    cells += [""] * min(columns - 1, width - len(cells))


_POWER = re.compile(r"[+\-\u2212\u2013]?[0-9]{1,6}\s*")
_CHECKED_LAST_CHARACTERS = 8


def get_power_mark(before: Sequence[str], raised: str) -> str:
    """Return "^" if a raised text is a power of the number before it, as 6 is in 10^6; else "".

    Args:
        before: the parts of the line up to the raised text.
    """
    if not _POWER.fullmatch(raised):
        return ""
    last = "".join(before[-_CHECKED_LAST_CHARACTERS:])[-1:]
    return "^" if last.isdecimal() else ""


def get_repeated_text(cell: str) -> str:
    """Return a short cell, to be repeated in further rows; "" for a long one."""
    return cell if len(cell) <= _MAX_REPEATED_LENGTH else ""


def names_columns(record: Sequence[str], columns: int) -> bool:
    """Return whether a table's first record names its columns.

    It does if its cells are words or years (numbers, dates and amounts are data), if all of them
    are different, and if at most one in three columns is empty. If all records of a table of two or
    more columns are like that, the first is also assumed to be a header, since most such tables
    have a header.
    """
    filled_cells = [cell for cell in record if cell]
    return (
        len(filled_cells) >= max(_MIN_COLUMNS, columns - columns // 3)
        and len(set(filled_cells)) == len(filled_cells)
        and all(is_name(cell) for cell in filled_cells)
        and any(not _YEAR.fullmatch(cell) for cell in filled_cells)
    )


def is_name(cell: str) -> bool:
    """Return whether a cell that is not empty is a word or a year."""
    letters = sum(map(str.isalpha, cell))
    return cell[0].isalpha() or 2 * letters > len(cell) or _YEAR.fullmatch(cell) is not None


MAX_HEADING_LEVEL = 6
_BLANK_LINE = "\n\n"
# Control characters, invisible marks, and the characters that pdfium puts for hyphens at line ends.
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\u200b\u2060\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A block without its offsets in the text; see model.Block."""

    kind: BlockKind
    text: str
    level: int = 0
    page: int | None = None
    slide: int | None = None
    sheet: str | None = None
    row: int | None = None
    block_id: str | None = None


def clean(text: str) -> str:
    """Return a text without control and invisible characters, and without outer blanks."""
    return _UNWANTED.sub("", text).strip()


def limit_pieces(pieces: Iterable[Piece], limits: ParseLimits) -> Iterator[Piece]:
    """Yield the pieces that are not empty; raise an error once they exceed the limits."""
    characters = 0
    for piece in pieces:
        if piece.text:
            characters += len(piece.text) + len(_BLANK_LINE)
            limits.check_characters(characters)
            yield piece


def assemble(pieces: Iterable[Piece]) -> tuple[str, tuple[Block, ...]]:
    """Return a text of these pieces, and its blocks.

    Blank lines separate the blocks; but two adjacent rows are separated by a line end.
    """
    texts: list[str] = []
    blocks: list[Block] = []
    outline = Outline()
    at = 0
    before: Piece | None = None
    for piece in pieces:
        if before is not None:
            gap = "\n" if before.kind == piece.kind == "row" else _BLANK_LINE
            texts.append(gap)
            at += len(gap)
        before = piece
        heading = piece.kind == "heading"
        path = outline.enter(piece.level, shorten_heading(piece.text)) if heading else outline.path
        end = at + len(piece.text)
        blocks.append(
            Block(
                piece.kind, at, end, path, piece.level,
                page=piece.page, slide=piece.slide, sheet=piece.sheet, row=piece.row,
                block_id=piece.block_id,
            )
        )  # fmt: skip
        texts.append(piece.text)
        at = end
    return "".join(texts), tuple(blocks)
