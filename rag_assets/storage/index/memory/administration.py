"""Indexes and views in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from rag_assets.common.errors import RagAssetsError
from rag_assets.storage.index.memory.state import Memory, missing_index
from rag_assets.storage.index.model import (
    BuildCount,
    CountedBuild,
    IndexRef,
    IndexSpec,
    Owner,
    Placement,
    Presence,
    TenantView,
)


class MemoryIndexes:
    """Administers indexes in memory (see IndexAdministration)."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def cluster_id(self) -> str | None:
        return None

    def adopt(self, indexes: Mapping[str, str]) -> None:
        """Do nothing: the memory belongs to its process."""

    def take_over(self, former: UUID) -> None:
        """Do nothing: the memory belongs to its process."""

    def place(self, spec: IndexSpec, tenant: str, placement: Placement) -> IndexRef:
        is_dedicated = placement == "dedicated"
        stem = f"{self._memory.prefix}-{spec.dimensions}-{spec.vector_index}-"
        name = f"{stem}own-{tenant}" if is_dedicated else self._shared_with_room(f"{stem}shared-")
        index = self._memory.create(name, spec, tenant if is_dedicated else None)
        return IndexRef(name, index.identity)

    def presence(self, index: IndexRef) -> Presence:
        return self._memory.presence(index)

    def require_usable(self, index_name: str) -> None:
        """Do nothing: data in memory can always be searched."""

    def conditions(self) -> list[RagAssetsError]:
        return []

    def layout_differences(self) -> list[str]:
        return []

    def count(self, builds: Sequence[CountedBuild]) -> list[BuildCount]:
        return [self._count(build) for build in builds]

    def vector_length(self, index_name: str) -> int | None:
        index = self._memory.indexes.get(index_name)
        return None if index is None else index.spec.dimensions

    def fits(self, index_name: str, spec: IndexSpec) -> bool:
        index = self._memory.indexes.get(index_name)
        return index is None or index.spec == spec

    def names(self) -> list[str]:
        return sorted(self._memory.indexes)

    def dedicated(self, tenant: str) -> list[str]:
        indexes = self._memory.indexes.items()
        return sorted(name for name, index in indexes if index.dedicated_to == tenant)

    def owners(self, index_name: str) -> list[tuple[str, int]]:
        rows = self._memory.rows(index_name)
        return sorted({(row.fields["tenant"], row.fields["incarnation"]) for row in rows})

    def bytes_per_entry(self, index_name: str) -> float | None:
        rows = list(self._memory.rows(index_name))
        held = sum(row.vector.nbytes + len(repr(row.fields)) for row in rows)
        return held / len(rows) if rows else None

    def drop(self, index_name: str) -> None:
        with self._memory.lock:
            self._memory.indexes.pop(index_name, None)
            views = self._memory.views
            self._memory.views = {t: view for t, view in views.items() if view[0] != index_name}

    def expunge(self, index_name: str) -> int:
        return 0

    def view_name(self, tenant: str) -> str:
        return f"{self._memory.prefix}-tenant-{tenant}"

    def publish(self, index_name: str, owner: Owner) -> None:
        if index_name not in self._memory.indexes:
            raise missing_index(index_name)
        self._memory.views[owner.tenant] = (index_name, owner)

    def withdraw(self, tenant: str) -> None:
        self._memory.views.pop(tenant, None)

    def is_published(self, index_name: str, owner: Owner) -> bool:
        return self._memory.views.get(owner.tenant) == (index_name, owner)

    def view(self, tenant: str) -> TenantView | None:
        view = self._memory.views.get(tenant)
        if view is None:
            return None
        tenants = {row.fields["tenant"] for row in self._memory.list_owned_rows(*view)}
        return TenantView(self.view_name(tenant), restricted=True, tenants=tuple(sorted(tenants)))

    def _count(self, build: CountedBuild) -> BuildCount:
        presence = self._memory.presence(build.index)
        if presence != "present":
            return BuildCount(presence)
        rows = self._memory.list_owned_rows(build.index.name, build.owner)
        recent = sum(row.fields["index_key"] in build.recent_keys for row in rows)
        is_shown = not build.is_serving or self.is_published(build.index.name, build.owner)
        return BuildCount(presence, len(rows), recent, is_shown)

    def _shared_with_room(self, stem: str) -> str:
        number = 1
        while len(self._memory.rows(f"{stem}{number}")) >= self._memory.shared_limit:
            number += 1
        return f"{stem}{number}"
