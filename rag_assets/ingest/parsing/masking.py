"""Mask credentials in a parsed document: in its text, headings, sheet names and title.

Credentials in tables are found by the names of columns and labels. A column name above a cell, or a
label before it, determines what the cell means. So any value of a cell with the name of a
credential is treated as a credential, unless it is a placeholder, a type or a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rag_assets.ingest.parsing.blocks import Outline
from rag_assets.ingest.parsing.model import Block, MaskedSpan, ParsedText
from rag_assets.privacy.described import is_described
from rag_assets.privacy.secrets.names import ANCHORS, find_value_kind
from rag_assets.privacy.secrets.spans import Scans, mask, redact
from rag_assets.privacy.secrets.values import ValueKind, is_cell_secret

VERSION = 2
"""Must be increased whenever other cells are found than before; it is part of keys."""

_RULE = "credential-column"
_DELIMITERS = "|,;\t"
_MAX_COLUMNS = 500
_PAIR = 2


class _Cell(NamedTuple):
    start: int
    end: int


class _Columns(NamedTuple):
    """The separator of a table's cells, and the kinds of credentials by index of their column."""

    delimiter: str
    kinds: dict[int, ValueKind]


def find_credential_cells(parsed: ParsedText) -> Iterator[MaskedSpan]:
    """Yield the cells whose column name or label names a credential."""
    columns: _Columns | None = None
    for block in parsed.blocks:
        if block.kind == "heading":
            columns = _find_columns(parsed.text, block.start, block.end)
        elif block.kind == "row":
            yield from _find_credentials_in_row(parsed.text, _Cell(block.start, block.end), columns)
        elif block.kind == "table":
            yield from _find_credentials_in_table(parsed.text, block.start, block.end)


def _find_credentials_in_table(text: str, start: int, end: int) -> Iterator[MaskedSpan]:
    """Yield the credentials in a table block, whose first line may have the column names."""
    lines = list(_iter_lines(text, start, end))
    columns = _find_columns(text, *lines[0]) if lines else None
    for line in lines[1:] if columns is not None and columns.kinds else lines:
        yield from _find_credentials_in_row(text, _Cell(*line), columns)


def _find_credentials_in_row(
    text: str, row: _Cell, columns: _Columns | None
) -> Iterator[MaskedSpan]:
    if columns is not None and columns.kinds:
        yield from _find_below_columns(text, row, columns)
    elif _may_name_credential(text, row):
        yield from _find_next_to_label(text, row)


def _find_columns(text: str, start: int, end: int) -> _Columns | None:
    for delimiter in _DELIMITERS:
        cells = list(_iter_cells(text, start, end, delimiter))
        if len(cells) > 1:
            kinds = (
                _find_credential_columns(text, cells)
                if _may_name_credential(text, _Cell(start, end))
                else {}
            )
            if kinds or delimiter == "|":
                return _Columns(delimiter, kinds)
    return None


def _find_credential_columns(text: str, cells: Sequence[_Cell]) -> dict[int, ValueKind]:
    kinds = ((n, find_value_kind(text[cell.start : cell.end])) for n, cell in enumerate(cells))
    return {n: kind for n, kind in kinds if kind is not None}


def _may_name_credential(text: str, cell: _Cell) -> bool:
    """Return whether a line contains a word that occurs in names of credentials."""
    lowered = text[cell.start : cell.end].lower()
    return any(word in lowered for word in ANCHORS)


def _find_below_columns(text: str, row: _Cell, columns: _Columns) -> Iterator[MaskedSpan]:
    for number, cell in enumerate(_iter_cells(text, row.start, row.end, columns.delimiter)):
        kind = columns.kinds.get(number)
        if kind is not None and is_cell_secret(kind, text[cell.start : cell.end]):
            yield MaskedSpan(cell.start, cell.end, _RULE)


def _find_next_to_label(text: str, row: _Cell) -> Iterator[MaskedSpan]:
    """Yield the second cell of a row if the first cell, its label, names a credential."""
    for delimiter in _DELIMITERS:
        cells = [c for c in _iter_cells(text, row.start, row.end, delimiter) if c.end > c.start]
        if len(cells) < _PAIR:
            continue
        kind = find_value_kind(text[cells[0].start : cells[0].end])
        value = text[cells[1].start : cells[1].end]
        if kind is not None and is_cell_secret(kind, value, is_described=len(cells) > _PAIR):
            yield MaskedSpan(cells[1].start, cells[1].end, _RULE)
        return


def _iter_cells(text: str, start: int, end: int, delimiter: str) -> Iterator[_Cell]:
    """Yield the cells of a record, without quotation marks, back-ticks and blanks around them."""
    at = start
    for _ in range(_MAX_COLUMNS):
        stop = text.find(delimiter, _find_quotation_end(text, at, end), end)
        stop = end if stop < 0 else stop
        yield _trim_cell(text, at, stop)
        if stop == end:
            return
        at = stop + 1


def _find_quotation_end(text: str, start: int, end: int) -> int:
    """Return the end of the quotation in a cell; the start of the cell if it has none."""
    if not text.startswith('"', start):
        return start
    close = text.find('"', start + 1, end)
    while close >= 0 and text.startswith('"', close + 1, end):
        close = text.find('"', close + 2, end)
    return max(close, start)


def _trim_cell(text: str, start: int, end: int) -> _Cell:
    inner = text[start:end].lstrip(" \t\"'`")
    start = end - len(inner)
    end = start + len(inner.rstrip(" \t\"'`\r\n"))
    for mark in ("**", "__"):
        if (
            end - start > 2 * len(mark)
            and text.startswith(mark, start)
            and text.endswith(mark, start, end)
        ):
            return _Cell(start + len(mark), end - len(mark))
    return _Cell(start, end)


def _iter_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for line in text[start:end].splitlines(keepends=True):
        yield at, at + len(line.rstrip("\r\n"))
        at += len(line)


def join_spans(spans: Iterable[MaskedSpan]) -> tuple[MaskedSpan, ...]:
    """Return spans in order, with overlapping spans merged.

    A merged span has the rule of the last span with a rule in privacy.described, else of the first.
    """
    joined: list[MaskedSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        if joined and span.start < joined[-1].end:
            last = joined[-1]
            rule = span.rule if is_described(span.rule) else last.rule
            joined[-1] = MaskedSpan(last.start, max(last.end, span.end), rule)
        else:
            joined.append(span)
    return tuple(joined)


def mask_document(parsed: ParsedText, scanner: Scans) -> ParsedText:
    """Mask every credential in a parsed document.

    The whole text is scanned at once, since the name of a credential may be on the line above.
    Headings and title are then taken from the masked text; they are also scanned separately.

    Raises:
        TimeoutError: the scan took too long.
    """
    spans = find_credentials(parsed, scanner)
    if not spans:
        title = redact(parsed.title, scanner) if parsed.title else None
        blocks = tuple(_mask_sheet_names(parsed.blocks, scanner))
        return replace(parsed, blocks=blocks, title=title)
    text = mask(parsed.text, spans)
    blocks = tuple(_mask_sheet_names(_mask_paths(parsed, text, spans, scanner), scanner))
    title = redact(_mask_title(parsed, text, blocks), scanner) if parsed.title else None
    return replace(parsed, text=text, blocks=blocks, title=title, masked=spans)


def mask_new_credentials(parsed: ParsedText, scanner: Scans) -> tuple[ParsedText, list[str]] | None:
    """Mask credentials that `scanner` finds in a document which other rules already masked.

    Return the text, in which earlier masks are kept, and the rule that found each new credential;
    None if there are no new credentials.

    Raises:
        TimeoutError: the scan took too long.
    """
    masked_again = mask_document(parsed, scanner)
    if (masked_again.text, masked_again.title, masked_again.blocks) == (
        parsed.text,
        parsed.title,
        parsed.blocks,
    ):
        return None
    rules = [
        s.rule
        for s in masked_again.masked
        if parsed.text[s.start : s.end] != masked_again.text[s.start : s.end]
    ]
    if not rules:
        names = [parsed.title or "", *(block.sheet or "" for block in parsed.blocks)]
        rules = [span.rule for name in dict.fromkeys(names) for span in scanner.scan(name)]
    spans = join_spans([*parsed.masked, *masked_again.masked])
    return replace(masked_again, masked=spans), rules


def find_credentials(parsed: ParsedText, scanner: Scans) -> tuple[MaskedSpan, ...]:
    """Return the spans of all credentials in a text, by their form or the names of columns."""
    spans = (MaskedSpan(s.start, s.end, s.rule) for s in scanner.scan(parsed.text))
    return join_spans([*spans, *find_credential_cells(parsed)])


def _mask_title(parsed: ParsedText, text: str, blocks: tuple[Block, ...]) -> str:
    """Return the title with its credentials masked as in the heading or text that it comes from."""
    title = parsed.title or ""
    for before, after in zip(parsed.blocks, blocks, strict=True):
        if before.kind == "heading" and before.heading_path[-1] == title:
            return after.heading_path[-1]
    at = parsed.text.find(title)
    return text[at : at + len(title)] if at >= 0 else title


def _mask_paths(
    parsed: ParsedText, text: str, spans: Sequence[MaskedSpan], scanner: Scans
) -> Iterator[Block]:
    outline = Outline()
    first = 0
    for block in parsed.blocks:
        path = outline.path if block.kind != "front_matter" else ()
        if block.kind == "heading":
            while first < len(spans) and spans[first].end <= block.start:
                first += 1
            name = block.heading_path[-1]
            if first < len(spans) and spans[first].start < block.end:
                name = _mask_heading_name(name, parsed.text, text, block)
            path = outline.enter(block.level, redact(name, scanner))
        yield replace(block, heading_path=path)


def _mask_sheet_names(blocks: Iterable[Block], scanner: Scans) -> Iterator[Block]:
    """Yield the blocks with masked sheet names, since the text may not contain these names."""
    masked_names: dict[str, str] = {}
    for block in blocks:
        if block.sheet is None:
            yield block
            continue
        if block.sheet not in masked_names:
            masked_names[block.sheet] = redact(block.sheet, scanner)
        yield replace(block, sheet=masked_names[block.sheet])


def _mask_heading_name(name: str, before: str, after: str, block: Block) -> str:
    """Return the masked name of a heading in which a credential was found.

    If the text does not contain the name, because it was cut or joined from two lines, the whole
    name is masked.
    """
    at = before.find(name, block.start, block.end)
    return after[at : at + len(name)] if at >= 0 else mask(name, [MaskedSpan(0, len(name), "")])
