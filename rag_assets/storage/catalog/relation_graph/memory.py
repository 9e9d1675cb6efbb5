"""The graphs that a process keeps in memory, of the tenants that were asked last."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from rag_assets.common.errors import RagAssetsError
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.relation_graph.graph import Graph, GraphKey
from rag_assets.storage.catalog.relation_graph.loading import GraphLoader
from rag_assets.storage.catalog.relation_state import RelationState

_LOG = logging.getLogger(__name__)

MOST_BYTES = 256 * 1024**2
_MOST_TENANTS = 10_000
_REST = 5.0
"""How many times as long as a load took, nothing is loaded for that tenant after it."""
_LONGEST_REST = 10.0
"""Seconds of that: what has changed since then is read faster than all of it was."""
_LATER_SECONDS = 600.0
"""After that it is tried again whether a graph fits, or can be read."""


@dataclass(slots=True)
class _Tenant:
    """What is known of one tenant.

    Attributes:
        graph: that was loaded last.
        not_before: seconds of the monotonic clock, before which none is loaded.
        loads: whether one is being loaded.
    """

    graph: Graph | None = None
    not_before: float = 0.0
    loads: bool = False


class RelationGraphs:
    """Graphs of tenants that are asked repeatedly, as many as fit.

    Nothing waits for one: until it is loaded, and whenever the catalog is ahead of it, the catalog
    answers, and it is brought to the catalog's state in the background.

    Args:
        database: that holds the catalog.
        most_bytes: that all graphs may take together.
    """

    def __init__(self, database: Database, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._loader = GraphLoader(database)
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()

    def of(self, key: GraphKey, state: RelationState) -> Graph | None:
        """The graph of a build in exactly this state; None while there is none.

        The second question for a tenant has its graph loaded: a process that asks once need not.
        """
        with self._lock:
            tenant = self._tenants.get(key.ref.id)
            if tenant is None:
                self._tenants[key.ref.id] = _Tenant()
                self._forget_some()
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
        """What all graphs take."""
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
                self._forget_some()

    def _forget_some(self) -> None:
        """Forget the graphs that were asked longest ago, where there are too many."""
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
