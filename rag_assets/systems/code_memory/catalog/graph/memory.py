"""The graphs that a process keeps in memory for the most recently queried tenants."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from rag_assets.common.errors import RagAssetsError
from rag_assets.storage.catalog.database import Database
from rag_assets.systems.code_memory.catalog.graph.graph import Graph, GraphKey
from rag_assets.systems.code_memory.catalog.graph.loading import GraphLoader
from rag_assets.systems.code_memory.catalog.relation_state import RelationState

_LOG = logging.getLogger(__name__)

MOST_BYTES = 256 * 1024**2
_MOST_TENANTS = 10_000
_REST = 5.0
"""Pause before a tenant's graph is loaded again, as a multiple of the last load's duration."""
_LONGEST_REST = 10.0
"""Maximum pause in seconds; after that time, loading only the changes beats a full load."""
_LATER_SECONDS = 600.0
"""Seconds until the next attempt to load a graph that did not fit or could not be read."""


@dataclass(slots=True)
class _Tenant:
    """The state of one tenant.

    Attributes:
        graph: the graph that was last loaded.
        not_before: time of the monotonic clock, in seconds, before which no graph is loaded.
        loads: whether a graph is being loaded now.
    """

    graph: Graph | None = None
    not_before: float = 0.0
    loads: bool = False


class RelationGraphs:
    """The graphs of tenants that are queried repeatedly, as many as fit into memory.

    Callers never wait for a graph. While the graph is not loaded, or is older than the catalog, the
    catalog answers, and the graph is updated in the background.

    Args:
        database: the catalog's database.
        most_bytes: the maximum size of all graphs together.
    """

    def __init__(self, database: Database, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._loader = GraphLoader(database)
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()

    def of(self, key: GraphKey, state: RelationState) -> Graph | None:
        """Return the graph of a build in exactly this state; None if it is not loaded.

        Only the second query for a tenant loads its graph: a process that queries once does not
        need it.
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
            if not tenant.loads and time.monotonic() >= tenant.not_before and self.most_bytes:
                tenant.loads = True
                threading.Thread(
                    target=self._load, args=(key, tenant), name="relation-graph", daemon=True
                ).start()
        return None

    @property
    def bytes(self) -> int:
        """Return the size of all graphs in bytes."""
        with self._lock:
            return self._bytes()

    def _load(self, key: GraphKey, tenant: _Tenant) -> None:
        former = tenant.graph if tenant.graph is not None and tenant.graph.key == key else None
        graph, rest = None, _LATER_SECONDS
        try:
            with self._turn:
                started = time.monotonic()
                graph = self._loader.load(key, self.most_bytes, former)
                if graph is not None:
                    rest = min(_LONGEST_REST, _REST * (time.monotonic() - started))
        except RagAssetsError as error:
            _LOG.warning(f"{key.ref.id}: its relations were not read into memory: {error}")
        finally:
            with self._lock:
                tenant.graph, tenant.loads = graph, False
                tenant.not_before = time.monotonic() + rest
                self._drop_least_used()

    def _drop_least_used(self) -> None:
        """Drop the least recently queried graphs until the others fit."""
        while len(self._tenants) > _MOST_TENANTS:
            self._tenants.popitem(last=False)
        held = self._bytes()
        for tenant in self._tenants.values():
            if held <= self.most_bytes:
                return
            if tenant.graph is not None:
                held -= tenant.graph.bytes
                tenant.graph = None

    def _bytes(self) -> int:
        return sum(one.graph.bytes for one in self._tenants.values() if one.graph is not None)
