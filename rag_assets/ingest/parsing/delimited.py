"""CSV and TSV: the source itself is the text, and each record is a block.

A record ends at a line end outside quotation marks. If a quotation mark in a file is never closed,
all quotation marks are ignored, and each line is a record. The text is scanned once.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from rag_assets.ingest.parsing.blocks import format_row, names_columns
from rag_assets.ingest.parsing.media_types import TSV
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.text import Line, decode_text, split_lines

_DELIMITERS = ",;\t|"
_SAMPLE_RECORDS = 50
_SAMPLE_CHARACTERS = 65_536
_QUOTE = '"'
_DECLARED_DELIMITER = re.compile(r"(?i)sep=([^\w\s\"]|\t)(?=[\r\n])")
_REMARK = re.compile(r"#(?:[#\s]|$)")
_MAX_NAMES_LENGTH = 4_000
_MIN_NAME_LENGTH = 12
_NUMBER = re.compile(r"[-+(]?[$€£¥]?[0-9][0-9.,' ]*%?\)?")
_NUMBER_OR_BLANK = re.compile(rf"(?:{_NUMBER.pattern})?")


class _RecordSpan(NamedTuple):
    """A record: its number (from 1, counting blank records) and its offsets."""

    number: int
    start: int
    end: int


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read a delimited file; see registry.ParseFunction."""
    text = decode_text(data, limits)
    declared = _DECLARED_DELIMITER.match(text)
    if declared:
        delimiter = declared[1]
    else:
        preferred = "\t" if media_type == TSV else ""
        delimiter = _detect_delimiter(text[:_SAMPLE_CHARACTERS], preferred)
    return ParsedText(text=text, blocks=tuple(_iter_blocks(text, delimiter)))


def _iter_blocks(text: str, delimiter: str) -> Iterator[Block]:
    """Yield the lines above a table as paragraphs, its header as a heading, and its records."""
    records = _list_records(text, delimiter)
    sample = [_list_cells(text[r.start : r.end], delimiter) for r in records[:_SAMPLE_RECORDS]]
    header = _find_header(text, records, sample)
    if header is None:
        for number, start, end in records:
            yield Block("row", start, end, row=number)
        return
    for number, start, end in records[:header]:
        # The line `sep=;` is for spreadsheet programs.
        is_setting = start == 0 and _DECLARED_DELIMITER.match(text)
        yield Block("front_matter" if is_setting else "paragraph", start, end, row=number)
    cells = sample[header]
    name_length = max(_MIN_NAME_LENGTH, _MAX_NAMES_LENGTH // len(cells))
    names = format_row([_shorten_name(cell, name_length) for cell in cells])
    path = (_shorten_name(names, _MAX_NAMES_LENGTH),)
    first = records[header]
    yield Block("heading", first.start, first.end, path, 1, row=first.number)
    for number, start, end in records[header + 1 :]:
        yield Block("row", start, end, path, row=number)


def _find_header(
    text: str, records: Sequence[_RecordSpan], sample: Sequence[list[str]]
) -> int | None:
    """Return the index of the record that names the columns; None without a header.

    Above it may be lines of one cell, and remarks that start with `#`.
    """
    columns = max((sum(map(bool, cells)) for cells in sample), default=0)
    remark: int | None = None
    for index, cells in enumerate(sample):
        is_remark = _REMARK.match(text, records[index].start) is not None
        if names_columns(cells, max(columns, len(cells))):
            if not is_remark:
                return index
            remark = index  # the header, if no other record is one
        if not is_remark and (columns < 2 or sum(map(bool, cells)) > 1):  # noqa: PLR2004
            below = sample[index + 1 :]
            return index if below and _is_header(cells, below) else remark
    return remark


def _is_header(cells: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether a record with names such as `2019-01`, `#` or `%` is a header.

    All its cells are filled, none is a plain number, and some column below has only numbers, which
    its name is not.
    """
    if len(cells) < 2 or not all(cells) or any(map(_NUMBER.fullmatch, cells)):  # noqa: PLR2004
        return False
    columns = zip(*(row for row in below if len(row) == len(cells)), strict=False)
    return any(any(column) and all(map(_NUMBER_OR_BLANK.fullmatch, column)) for column in columns)


def _shorten_name(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"


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
        if _ends_inside_quotation(line.text, delimiter, is_inside=inside):
            continue
        if inside or not line.is_blank:
            records.append(_RecordSpan(number, start, line.end))
        start = None
    return records if start is None else None


def _ends_inside_quotation(line: str, delimiter: str, *, is_inside: bool) -> bool:
    """Return whether a line ends inside a quotation, which only the start of a field can open."""
    if _QUOTE not in line:
        return is_inside
    for field in line.split(delimiter):
        if not is_inside and not field.startswith(_QUOTE):
            continue
        # Marks within a field come in pairs, so an odd number changes the state.
        if field.count(_QUOTE) % 2:
            is_inside = not is_inside
    return is_inside


def _detect_delimiter(sample: str, preferred: str = "") -> str:
    """Return the delimiter that divides most records of a sample into equally many fields.

    Args:
        preferred: the delimiter of the format, which counts if it divides any record at all.
    """
    if preferred and preferred in sample:
        return preferred

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
