"""Usage of searches, recorded in the background."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeAlias

from rag_assets.billing.spending import build_usage
from rag_assets.common.background_batcher import BackgroundBatcher
from rag_assets.models.embedding.protocol import Charge
from rag_assets.models.prices import FREE, Price, split_embedder_id
from rag_assets.storage.catalog.accounts.usage import Usage
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef

_LOG = logging.getLogger(__name__)

_Account: TypeAlias = tuple[TenantRef, str]


class Meter:
    """Adds to the usage of tenants in a background thread.

    Usage that arrives during a statement is summed up for the next statement. So statements never
    queue, whatever the number of searches.

    Args:
        catalog: records usage.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._batcher: BackgroundBatcher[tuple[_Account, Usage]] = BackgroundBatcher(
            self._write, name="usage of searches"
        )

    def count(self, ref: TenantRef, embedder_id: str, charge: Charge, price: Price | None) -> None:
        """Add the charge of one query; free queries are not recorded."""
        if price != FREE:
            self._batcher.put(((ref, embedder_id), build_usage(charge, price)))

    def close(self) -> None:
        """Wait until everything is recorded."""
        self._batcher.close()

    def _write(self, batch: Sequence[tuple[_Account, Usage]]) -> None:
        sums: dict[_Account, Usage] = {}
        for account, used in batch:
            sums[account] = sums.get(account, Usage()) + used
        for (ref, embedder_id), used in sums.items():
            try:
                self._catalog.usage.add(ref, *split_embedder_id(embedder_id), used)
            except Exception as error:
                _LOG.warning(f"{ref.id}: usage was not recorded: {type(error).__name__}")
