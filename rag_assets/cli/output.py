"""Output: results on standard output, as text or JSON; progress on standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from rag_assets.common.errors import RagAssetsError
from rag_assets.privacy.masker import get_masker, might_hold_credential

_CONTROL_CHARACTERS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_PIPED_WIDTH = 240
"""Columns of a table if standard output is not a terminal."""


def print_json(value: Any) -> None:
    """Print a value as one line of JSON on standard output."""
    sys.stdout.write(json.dumps(value, default=_to_json_value, ensure_ascii=False) + "\n")


def say(line: str = "") -> None:
    """Print a line of the result on standard output."""
    sys.stdout.write(replace_controls(line) + "\n")


def progress(line: str) -> None:
    """Print a line of progress on standard error."""
    sys.stderr.write(f"  {replace_controls(_mask(line))}\n")
    sys.stderr.flush()


def warn(line: str) -> None:
    """Print a warning on standard error."""
    sys.stderr.write(f"warning: {replace_controls(_mask(line))}\n")


def print_error(error: RagAssetsError, *, as_json: bool) -> None:
    """Print an error and its hint, masked because arguments may contain credentials."""
    message, hint = _mask(error.message), _mask(error.hint or "")
    if as_json:
        print_json({"error": message, "hint": hint or None})
        return
    sys.stderr.write(f"error: {replace_controls(message)}\n")
    if hint:
        sys.stderr.write(f"hint: {replace_controls(hint)}\n")


def _mask(line: str) -> str:
    """Mask credentials in a line. The rules are loaded only if it may contain a credential."""
    if not might_hold_credential(line):
        return line
    from rag_assets.common.settings import Settings

    try:
        local: Path | None = Settings.from_environment().local
    except RagAssetsError:
        # The error that is being printed may be the failure to load the rules.
        local = None
    return get_masker(local).text(line)


def replace_controls(text: str) -> str:
    """Replace control characters, which documents and file names may contain."""
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; without rows, only its header."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else replace_controls(str(cell))) for cell in row))
    Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH).print(table)


def format_seconds(value: float) -> str:
    """Format a duration: "0.52 s" below ten seconds, otherwise "14 s"."""
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"  # noqa: PLR2004


def format_time(moment: datetime | None) -> str:
    """Format a time to the minute; "" for None."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _to_json_value(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (Path, UUID)):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"values of type {type(value).__name__} cannot be printed as JSON")
