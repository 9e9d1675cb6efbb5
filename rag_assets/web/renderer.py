"""Rendering of Jinja templates with autoescaping, and their filters."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined

from rag_assets.common.failure_kinds import empty_note
from rag_assets.common.formatting import format_count
from rag_assets.ingest.parsing.media_types import get_format_name
from rag_assets.pipeline.slices import find_remedy
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.catalog.documents.status import NEVER

_UNITS = ("bytes", "kB", "MB", "GB")
_UNIT_FACTOR = 1000


def render(template: str, **values: Any) -> str:
    """Render a page."""
    return _build_own_environment().get_template(template).render(**values)


def format_size(count: int) -> str:
    """Format a number of bytes, such as "134.7 kB"."""
    value, unit = float(count), 0
    while value >= _UNIT_FACTOR and unit < len(_UNITS) - 1:
        value, unit = value / _UNIT_FACTOR, unit + 1
    return f"{count} bytes" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def format_moment(at: datetime | None) -> str:
    """Format a time in UTC to the second; "never" for None."""
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def build_environment(loader: BaseLoader) -> Environment:
    """Return the template environment, which escapes everything and rejects undefined variables."""
    env = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "size": format_size,
        "moment": format_moment,
        "number": "{:,}".format,
        "counted": format_count,
    }
    return env


def _format_note(document: Document) -> str:
    return empty_note(document.chunk_count, document.dropped_count) or ""


@cache
def _build_own_environment() -> Environment:
    env = build_environment(PackageLoader("rag_assets.web"))
    env.filters |= {"format": get_format_name, "remedy": find_remedy, "note": _format_note}
    env.globals["never"] = NEVER
    return env
