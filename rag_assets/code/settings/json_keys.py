"""The entries of JSON, with comments and trailing commas where they are."""

from __future__ import annotations

from rag_assets.code.settings.entries import Entry
from rag_assets.code.settings.flow import Flow


def json_entries(text: str) -> tuple[tuple[Entry, ...], bool]:
    """The entries of a JSON text, and whether it is whole."""
    begin = min((at for at in map(text.find, "{[") if at >= 0), default=-1)
    if begin < 0:
        return (), not text.strip()
    flow = Flow(text, begin)
    return flow.entries(), flow.whole
