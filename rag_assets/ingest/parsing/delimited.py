"""CSV and TSV: the source itself is the text, and each record is a block.

A record ends at a line end outside quotation marks. If a quotation mark in a file is never closed,
all quotation marks are ignored, and each line is a record. The text is scanned once.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from rag_assets.ingest.parsing.blocks import format_row, names_columns, shorten_heading
from rag_assets.ingest.parsing.media_types import TSV
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.text import Line, decode_text, split_lines

_DELIMITERS = ",;\t|"
_SAMPLE_RECORDS = 50
_SAMPLE_CHARACTERS = 65_536
_QUOTE = '"'


class _RecordSpan(NamedTuple):
    """A record: its number (from 1, counting blank records) and its offsets."""

    number: int
    start: int
    end: int


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a delimited file; see registry.ParseFunction."""
    text = decode_text(data, limits)
    delimiter = "\t" if media_type == TSV else _detect_delimiter(text[:_SAMPLE_CHARACTERS])
    return ParsedText(text=text, blocks=tuple(_iter_blocks(text, delimiter)))


def _iter_blocks(text: str, delimiter: str) -> Iterator[Block]:
    records = iter(_list_records(text, delimiter))
    path: tuple[str, ...] = ()
    if (first := next(records, None)) is None:
        return
    cells = _list_cells(text[first.start : first.end], delimiter)
    if names_columns(cells, len(cells)):
        path = (shorten_heading(format_row(cells)),)
        yield Block("heading", first.start, first.end, path, 1, row=first.number)
    else:
        yield Block("row", first.start, first.end, row=first.number)
    for number, start, end in records:
        yield Block("row", start, end, path, row=number)


def _list_records(text: str, delimiter: str) -> list[_RecordSpan]:
    lines = list(split_lines(text))
    quoted = _split_quoted_records(lines, delimiter) if _QUOTE in text else None
    if quoted is not None:
        return quoted
    return [
        _RecordSpan(n, line.start, line.end) for n, line in enumerate(lines, 1) if not line.is_blank
    ]


def _split_quoted_records(lines: list[Line], delimiter: str) -> list[_RecordSpan] | None:
    """Return the records of a text with quotation marks; None if a quotation is never closed."""
    records: list[_RecordSpan] = []
    number = 0
    start: int | None = None
    for line in lines:
        inside = start is not None
        if start is None:
            number += 1
            start = line.start
        if _ends_inside_quotation(line.text, delimiter, inside=inside):
            continue
        if inside or not line.is_blank:
            records.append(_RecordSpan(number, start, line.end))
        start = None
    return records if start is None else None


def _ends_inside_quotation(line: str, delimiter: str, *, inside: bool) -> bool:
    """Return whether a line ends inside a quotation, which only the start of a field can open."""
    if _QUOTE not in line:
        return inside
    for field in line.split(delimiter):
        if not inside and not field.startswith(_QUOTE):
            continue
        # Marks within a field come in pairs, so an odd number changes the state.
        if field.count(_QUOTE) % 2:
            inside = not inside
    return inside


def _detect_delimiter(sample: str) -> str:
    """Return the delimiter that divides most records of a sample into equally many fields."""

    def rate_delimiter(delimiter: str) -> tuple[int, int]:
        records = islice(_list_records(sample, delimiter), _SAMPLE_RECORDS)
        counts = Counter(len(_list_cells(sample[r.start : r.end], delimiter)) for r in records)
        fields, records_alike = counts.most_common(1)[0] if counts else (1, 0)
        return (records_alike, fields) if fields > 1 else (0, 0)

    return max(_DELIMITERS, key=rate_delimiter)


def _list_cells(record: str, delimiter: str) -> list[str]:
    try:
        rows = list(csv.reader([record], delimiter=delimiter))
    except csv.Error:  # a field is longer than the module's limit, or contains a line end
        return [record]
    return [" ".join(cell.split()) for cell in rows[0]] if rows else []
