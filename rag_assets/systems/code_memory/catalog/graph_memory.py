"""The graphs that a process keeps in memory for the most recently queried tenants.

A graph is loaded completely, or only its changes since a former state.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Text, cast, select

from rag_assets.common.batches import batched
from rag_assets.common.errors import RagAssetsError
from rag_assets.storage.catalog.database import Database, matches_any, matches_document
from rag_assets.storage.catalog.documents.readable import select_returnable
from rag_assets.storage.catalog.tables import document_index, documents
from rag_assets.systems.code_memory.catalog.graph import (
    Graph,
    GraphDocument,
    GraphKey,
    Segment,
    SegmentBuilder,
)
from rag_assets.systems.code_memory.catalog.relation_rows import STATE, RelationState
from rag_assets.systems.code_memory.catalog.tables import document_kinds, edges, symbols
from rag_assets.systems.code_memory.sources.records import get_repository_source

_BATCH_TEXTS = 1_000
_MAX_SEGMENTS = 8
_FEW_TEXTS = 1_000
_MAX_WASTE_RATIO = 2
"""Maximum ratio of stored to needed texts, and of stored texts to those in the first segment."""
_SYMBOL_COLUMNS = (
    *("chunk_set_key", "position", "symbol", "short", "role", "public"),
    *("line_start", "line_end", "content_hash"),
)
_EDGE_COLUMNS = (
    *("chunk_set_key", "position", "kind", "stated_of", "target", "how", "confidence"),
    *("line_start", "line_end", "path"),
)


def load_graph(
    database: Database, key: GraphKey, most_bytes: int, former: Graph | None = None
) -> Graph | None:
    """Return the current graph of a build; None if it would be larger than `most_bytes`.

    Args:
        former: a graph of the same build in an earlier state, whose texts are reused.

    Raises:
        ServiceUnavailable: Postgres does not answer.
    """
    with database.snapshot() as connection:
        state, rows = _read_documents(connection, key)
        current_keys = {row[-1] for row in rows}
        segments, texts = (
            ((), {}) if former is None else _choose_segments(former, state, current_keys)
        )
        missing = sorted(current_keys - texts.keys())
        if missing:
            room = most_bytes - sum(segment.bytes for segment in segments)
            next_text = segments[-1].first + segments[-1].count if segments else 0
            added = _load_segment(connection, key, missing, next_text, room)
            if added is None:
                return None
            segment, numbers = added.build()
            segments, texts = (*segments, segment), {**texts, **numbers}
    graph = Graph(key, state, segments, texts, _build_documents(rows, texts))
    return graph if graph.bytes <= most_bytes else None


def _read_documents(
    connection: Connection, key: GraphKey
) -> tuple[RelationState, Sequence[Sequence[Any]]]:
    """Return the state of the relations, and a row per document that ends with its text's key."""
    columns = (
        *(documents.c.document_id, documents.c.uri, documents.c.source, documents.c.access_scope),
        *(documents.c.source_type, cast(document_kinds.c.kinds, Text)),
        document_index.c.chunk_set_key,
    )
    query = (
        select_returnable(key.ref.id, key.generation, *columns)
        .outerjoin(document_kinds, matches_document(document_kinds.c, documents.c))
        .where(document_index.c.chunk_set_key.is_not(None))
    )
    state = connection.execute(STATE, {"tenant": key.ref.id}).one()
    return RelationState(*state), connection.execute(query).all()


def _choose_segments(
    former: Graph, state: RelationState, current_keys: set[str]
) -> tuple[tuple[Segment, ...], dict[str, int]]:
    """Return the segments to reuse, and the numbers of the wanted texts in them.

    If there are many small segments, only the first is reused. If too many stored texts no longer
    belong to a document, everything is loaded again.
    """
    if former.state.rows != state.rows or not former.segments:
        return (), {}
    texts = {key: number for key, number in former.texts.items() if key in current_keys}
    segments = former.segments
    if len(segments) >= _MAX_SEGMENTS:
        segments = segments[:1]
        texts = {key: number for key, number in texts.items() if number < segments[0].count}
    stored_count = sum(segment.count for segment in segments)
    is_alive = (
        len(texts) * _MAX_WASTE_RATIO > stored_count or stored_count - len(texts) < _FEW_TEXTS
    )
    if is_alive and segments[0].count * _MAX_WASTE_RATIO > stored_count:
        return segments, texts
    return (), {}


def _load_segment(
    connection: Connection, key: GraphKey, texts: Sequence[str], first: int, most: int
) -> SegmentBuilder | None:
    """Return a builder with the rows of texts; None if the segment would exceed `most` bytes."""
    builder = SegmentBuilder(first)
    for batch in batched(texts, _BATCH_TEXTS):
        rows = (
            connection.execute(
                select(*(table.c[name] for name in columns))
                .where(table.c.tenant == key.ref.id, matches_any(table.c.chunk_set_key, batch))
                .order_by(table.c.chunk_set_key, table.c.position)
            ).all()
            for table, columns in ((symbols, _SYMBOL_COLUMNS), (edges, _EDGE_COLUMNS))
        )
        builder.add(batch, *rows)
        if builder.bytes > most:
            return None
    return builder


def _build_documents(
    rows: Sequence[Sequence[Any]], texts: Mapping[str, int]
) -> dict[str, GraphDocument]:
    intern = sys.intern
    return {
        document_id: GraphDocument(
            *(document_id, uri, intern(source), intern(get_repository_source(source))),
            access_scope=intern(scope),
            source_type=intern(source_type),
            kinds_json=kinds,
            text_key=text_key,
            text=texts[text_key],
        )
        for document_id, uri, source, scope, source_type, kinds, text_key in rows
    }


_LOG = logging.getLogger(__name__)

MAX_BYTES = 256 * 1024**2
_MAX_TENANTS = 10_000
_PAUSE_FACTOR = 5.0
"""Pause before a tenant's graph is loaded again, as a multiple of the last load's duration."""
_MAX_PAUSE_SECONDS = 10.0
"""Maximum pause in seconds; after that time, loading only the changes beats a full load."""
_RETRY_SECONDS = 600.0
"""Seconds until the next attempt to load a graph that did not fit or could not be read."""


@dataclass(slots=True)
class _Tenant:
    """The most recently loaded graph of one tenant, and whether a graph is being loaded now.

    Attributes:
        not_before: time of the monotonic clock, in seconds, before which no graph is loaded.
    """

    graph: Graph | None = None
    not_before: float = 0.0
    is_loading: bool = False


class RelationGraphs:
    """The in-memory graphs of tenants that are queried repeatedly, at most `most_bytes` together.

    Callers never wait for a graph. While a graph is not loaded, or is older than the catalog,
    callers read the catalog, and the graph is updated in the background.
    """

    def __init__(self, database: Database, most_bytes: int = MAX_BYTES) -> None:
        self.most_bytes = most_bytes
        self._database = database
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()

    def get(self, key: GraphKey, state: RelationState) -> Graph | None:
        """Return the graph of a build in exactly this state; None if it is not loaded.

        Only the second query for a tenant starts to load its graph, because a process that queries
        once does not need it.
        """
        with self._lock:
            tenant = self._tenants.get(key.ref.id)
            if tenant is None:
                self._tenants[key.ref.id] = _Tenant()
                self._drop_least_used()
                return None
            self._tenants.move_to_end(key.ref.id)
            graph = tenant.graph
            if graph is not None and (graph.key, graph.state) == (key, state):
                return graph
            if not tenant.is_loading and time.monotonic() >= tenant.not_before and self.most_bytes:
                tenant.is_loading = True
                threading.Thread(
                    target=self._load, args=(key, tenant), name="relation-graph", daemon=True
                ).start()
        return None

    @property
    def bytes(self) -> int:
        """Return the size of all graphs in bytes."""
        graphs = (tenant.graph for tenant in self._tenants.values())
        return sum(graph.bytes for graph in graphs if graph is not None)

    def _load(self, key: GraphKey, tenant: _Tenant) -> None:
        former = tenant.graph if tenant.graph is not None and tenant.graph.key == key else None
        graph, rest = None, _RETRY_SECONDS
        try:
            with self._turn:
                started = time.monotonic()
                graph = load_graph(self._database, key, self.most_bytes, former)
                if graph is not None:
                    rest = min(_MAX_PAUSE_SECONDS, _PAUSE_FACTOR * (time.monotonic() - started))
        except RagAssetsError as error:
            _LOG.warning(f"{key.ref.id}: its relations were not read into memory: {error}")
        finally:
            with self._lock:
                tenant.graph, tenant.is_loading = graph, False
                tenant.not_before = time.monotonic() + rest
                self._drop_least_used()

    def _drop_least_used(self) -> None:
        while len(self._tenants) > _MAX_TENANTS:
            self._tenants.popitem(last=False)
        used_bytes = self.bytes
        for tenant in self._tenants.values():
            if used_bytes <= self.most_bytes:
                return
            if tenant.graph is not None:
                used_bytes -= tenant.graph.bytes
                tenant.graph = None
