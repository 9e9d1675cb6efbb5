"""The contents of the store in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.common.errors import IndexInconsistent
from rag_assets.storage.index.model import IndexRef, IndexSpec, Owner, Presence


@dataclass(frozen=True, slots=True)
class Row:
    """One stored entry.

    Attributes:
        tenant: the tenant whose searches may find it, as with routing; its fields may have been
            altered.
    """

    id: str
    tenant: str
    fields: Mapping[str, Any]
    vector: npt.NDArray[np.float32]


@dataclass(slots=True)
class Index:
    """One index.

    Attributes:
        dedicated_to: the only tenant in it; None if it is shared.
        rows: by the tenant whose searches may find them, and by id.
    """

    spec: IndexSpec
    dedicated_to: str | None
    identity: str
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)


@dataclass(slots=True)
class Memory:
    """The contents of one store.

    Attributes:
        views: the index and generation that each tenant's view shows.
        numbers: numbers of the indexes, in the order of their creation.
    """

    prefix: str
    shared_limit: int
    indexes: dict[str, Index] = field(default_factory=dict)
    views: dict[str, tuple[str, Owner]] = field(default_factory=dict)
    lock: RLock = field(default_factory=RLock)
    numbers: Iterator[int] = field(default_factory=count)

    def create(self, name: str, spec: IndexSpec, dedicated_to: str | None) -> Index:
        """Return the index of that name, creating it if necessary."""
        with self.lock:
            if name not in self.indexes:
                self.indexes[name] = Index(spec, dedicated_to, f"{name}@{next(self.numbers)}")
            return self.indexes[name]

    def presence(self, index: IndexRef) -> Presence:
        """Return whether an index still exists and was not replaced."""
        live = self.indexes.get(index.name)
        return index.compute_presence(None if live is None else live.identity)

    def rows(self, index_name: str) -> list[Row]:
        """Return all rows of an index; empty if it does not exist."""
        with self.lock:
            index = self.indexes.get(index_name)
            return [] if index is None else [*index.rows.values()]

    def list_owned_rows(self, index_name: str, owner: Owner) -> list[Row]:
        """Return the rows of one generation that its tenant's searches may find."""
        return [
            row
            for row in self.rows(index_name)
            if row.tenant == owner.tenant and _is_owned(row.fields, owner)
        ]


def _is_owned(stored: Mapping[str, Any], owner: Owner) -> bool:
    found = stored["tenant"], stored["incarnation"], stored["generation"]
    return found == (owner.tenant, owner.incarnation, owner.generation)


def missing_index(index_name: str) -> IndexInconsistent:
    """Return the error for a missing index."""
    return IndexInconsistent(
        f"index {index_name!r} is gone",
        hint="restore it with `rag-assets sync --repair`",
    )
