"""What questions cost: counted beside the search, which neither waits for it nor fails by it."""

from __future__ import annotations

import logging
import threading

from rag_assets.accounts.spending import used_of
from rag_assets.catalog.catalog import Catalog
from rag_assets.catalog.database import TenantRef
from rag_assets.catalog.usage import Used
from rag_assets.embedding.prices import FREE, Price, provider_and_model
from rag_assets.embedding.protocol import Charge

_LOG = logging.getLogger(__name__)


class Meter:
    """Adds to the usage of tenants from a thread of its own.

    While one statement is under way, what comes meanwhile is added up for the next: however many
    questions are asked, they never queue.

    Args:
        catalog: where usage is recorded.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._new: dict[tuple[TenantRef, str], Used] = {}
        self._writer: threading.Thread | None = None

    def count(self, ref: TenantRef, embedder_id: str, charge: Charge, price: Price | None) -> None:
        """Count what one question was charged; what is free is not worth a statement."""
        if price == FREE:
            return
        used = used_of(charge, price)
        with self._lock:
            key = (ref, embedder_id)
            self._new[key] = self._new.get(key, Used()) + used
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="usage of searches")
                self._writer.start()

    def close(self) -> None:
        """Wait until everything is recorded."""
        writer = self._writer
        if writer is not None:
            writer.join()

    def _write(self) -> None:
        while True:
            with self._lock:
                new, self._new = self._new, {}
                if not new:
                    self._writer = None
                    return
            for (ref, embedder_id), used in new.items():
                try:
                    self._catalog.usage.add(ref, *provider_and_model(embedder_id), used)
                except Exception as error:
                    _LOG.warning(f"{ref.id}: usage was not recorded: {type(error).__name__}")
