"""Metadata values for Dagster's UI: tables, Markdown with links, and charts."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import ceil
from typing import Any
from urllib.parse import quote

import dagster as dg

from rag_assets.pipeline.slices import DocumentNote

_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$-])")
_STEP, _SLIM, _BAR_HEIGHT, _THOUSANDS = 64, 12, 70, 10_000
INLINE = 1_000
"""Maximum characters of Markdown that Dagster displays inline instead of behind a button."""
_BAR = "#4f43dd"


def build_table(columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> dg.TableMetadataValue:
    """Return a table of values without links; the columns have Dagster's types by name."""
    names = list(columns)
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(zip(names, row, strict=True))) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(name, type_) for name, type_ in columns.items()]),
    )


def build_duration(value: float) -> dg.FloatMetadataValue:
    """Return a duration in seconds as a metadata value, rounded to milliseconds."""
    return dg.MetadataValue.float(round(value, 3))


def escape_markdown(value: object) -> str:
    """Return a value, such as a file name, escaped so that Markdown renders exactly its text."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(str(value).split()))


def build_document_link(tenant_id: str, document_id: str, uri: str) -> str:
    """Return a Markdown link to the page of a document in the webserver, with its name."""
    return f"[{escape_markdown(uri)}](/documents/{quote(tenant_id)}/{quote(document_id)})"


def build_documents_link(tenant_id: str, words: str, status: str | None = None) -> str:
    """Return a Markdown link to a tenant's documents, or only to those with one status."""
    query = f"?status={status}" if status else ""
    return f"[{escape_markdown(words)}](/documents/{quote(tenant_id)}{query})"


def render_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; a leading ">" aligns a column to the right."""
    head = " | ".join(column.removeprefix(">") for column in columns)
    rule = " | ".join("---:" if column.startswith(">") else "---" for column in columns)
    body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {head} |", f"| {rule} |", *body])


def build_notes_table(
    tenant_id: str,
    columns: Sequence[str],
    rows: Sequence[tuple[DocumentNote, str]],
    *,
    advice: str = "",
    status: str | None = None,
) -> dg.MarkdownMetadataValue:
    """Return a Markdown table of notes with links to their documents, or "none".

    The table is cut to the length that Dagster displays inline.

    Args:
        columns: headers of the document, its note, and an optional third value.
        advice: a remedy for all these documents.
    """
    if not rows:
        return dg.MetadataValue.md("none")
    rest = build_documents_link(tenant_id, "all of them", status)
    room = INLINE - len(render_table(columns, ())) - len(advice) - len(rest) - 40
    cells = []
    for note, more in rows:
        link = build_document_link(tenant_id, note.document_id, note.uri)
        row = (link, escape_markdown(note.text), *([escape_markdown(more)] if more else []))
        room -= len(" | ".join(row)) + 5
        if room < 0:
            break
        cells.append(row)
    lines = [render_table(columns, cells)] if cells else []
    if len(cells) < len(rows):
        lines.append(f"The first {len(cells)}; {rest}")
    return dg.MetadataValue.md("\n\n".join(filter(None, (*lines, advice))))


def build_bar_chart(
    title: str,
    bars: Sequence[tuple[str, float]],
    format_count: Callable[[float], str] = lambda count: _format_short(round(count)),
) -> dg.MarkdownMetadataValue:
    """Return a small bar chart as an SVG image in Markdown; "none" if all counts are 0.

    Args:
        bars: label and count of each bar, from left to right; Dagster displays up to seven bars
            inline.
        format_count: formats a count, in at most about seven characters.
    """
    most = max((count for _, count in bars), default=0)
    if not most:
        return dg.MetadataValue.md("none")
    strokes, labels = "", ""
    for at, (label, count) in enumerate(bars):
        middle, height = at * _STEP + _STEP // 2, ceil(_BAR_HEIGHT * count / most)
        strokes += f"M{middle} 85v-{height}"
        labels += f'<text x="{middle - 9}" y="{82 - height}">{escape(format_count(count))}</text>'
        labels += f'<text x="{middle - 9}" y="98">{escape(label)}</text>'
    return _render_chart(title, _STEP * len(bars), _STEP - 8, strokes, labels)


def build_series_chart(
    title: str, values: Sequence[float], first: str, last: str
) -> dg.MarkdownMetadataValue:
    """Return a chart of up to 31 values over time, with slim bars; "none" if all are 0."""
    most = max(values, default=0)
    if not most:
        return dg.MetadataValue.md("none")
    strokes = "".join(
        f"M{at * _SLIM + _SLIM // 2} 85v-{ceil(_BAR_HEIGHT * value / most)}"
        for at, value in enumerate(values)
        if value
    )
    end = _SLIM * len(values)
    labels = f'<text y="98">{escape(first)}</text>'
    labels += f'<text x="{end}" y="98" text-anchor="end">{escape(last)}</text>'
    return _render_chart(title, end, _SLIM - 3, strokes, labels)


def _render_chart(
    title: str, width: int, bar: int, strokes: str, labels: str
) -> dg.MarkdownMetadataValue:
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="99" font-size="11">'
        f'<path stroke="{_BAR}" stroke-width="{bar}" d="{strokes}"/>{labels}</svg>'
    )
    data = base64.b64encode(svg.encode()).decode()
    return dg.MetadataValue.md(
        f"{escape_markdown(title)}\n\n![chart](data:image/svg+xml;base64,{data})"
    )


def _format_short(count: int) -> str:
    return str(count) if count < _THOUSANDS else f"{count // 1000}k"
