"""A search of every file of a tenant's tables, whether a table's log lists it or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import polars as pl

from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.model import DeadKeys, LiveKeys
from rag_assets.storage.lake.schemas import CHUNKS_TABLE, EMBEDDINGS_TABLE, PARSED_TEXT_TABLE
from rag_assets.storage.lake.selection import filter_rows, scan_rows
from rag_assets.storage.lake.table import KeyedTable
from rag_assets.storage.lake.tenant_tables import dead_keys, live_keys

_TEXTS = {
    "parsed_text": (PARSED_TEXT_TABLE, pl.col("text")),
    "chunks": (
        CHUNKS_TABLE,
        pl.concat_str(
            pl.col("chunks").list.eval(pl.element().struct.field("text")).list.join("\n"),
            pl.col("contexts").list.join("\n").fill_null(""),
            pl.col("facts").fill_null(""),
            separator="\n",
        ),
    ),
}
_LOG = "_delta_log"


@dataclass(frozen=True, slots=True)
class Search:
    """Data that no file of a tenant may contain.

    Attributes:
        dead: keys that no row may have.
        phrases: parts of texts that only needed rows may contain.
        needed: keys of the rows that are needed.
    """

    dead: DeadKeys
    phrases: Sequence[str]
    needed: LiveKeys


def find_phrases_in_kept_texts(
    table: KeyedTable, dead: Set[str], phrases: Sequence[str]
) -> set[str]:
    """Return the phrases that also occur in texts that are kept.

    Args:
        table: the table of parsed texts.
        dead: keys of texts that are being deleted.
        phrases: phrases to search for.
    """
    opened = table.open()
    if opened is None or not phrases:
        return set()
    others = table.scan(opened).filter(
        ~pl.col("key").is_in(sorted(dead)), pl.col("text").str.contains_any([*phrases])
    )
    texts = others.select("text").collect()["text"]
    return {phrase for phrase in phrases for text in texts if phrase in text}


def files_holding(location: Location, search: Search) -> Iterator[str]:
    """Yield the files that contain a row with a dead key, or a phrase in an unneeded row."""
    for url in location.files():
        parts = url[len(location.url) :].strip("/").split("/")
        if _LOG in parts:
            text = "" if url.endswith(".parquet") else location.read(url)
            holds = any(phrase in text for phrase in search.phrases)
        else:
            holds = url.endswith(".parquet") and _holds(location, url, parts[0], search)
        if holds:
            yield "/".join(parts)


def _holds(location: Location, url: str, table: str, search: Search) -> bool:
    kind, text = _TEXTS.get(table, (EMBEDDINGS_TABLE, None))
    key = kind.key
    rows = scan_rows(kind, location, [url])
    keys: set[str] = set(rows.select(key).collect()[key])
    if keys & dead_keys(table, search.dead):
        return True
    needed = live_keys(table, search.needed)
    unneeded = set() if needed is None else keys - needed
    if text is None or not unneeded or not search.phrases:
        return False
    of_nobody = filter_rows(rows, key, unneeded)
    found = of_nobody.select(text.str.contains_any([*search.phrases]).any().alias("found"))
    return bool(found.collect()["found"][0])
