"""The reference vectors of each embedder's canary probes, and the last measured distances."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.account_tables import embedder_probes
from rag_assets.storage.catalog.database import Database, TenantRef


@dataclass(frozen=True, slots=True)
class StoredProbes:
    """The stored probes of one embedder of a tenant.

    Attributes:
        vectors: vectors of the first measurement, packed little-endian float32.
        distances: distances between the vectors of the first and of the last measurement, by probe;
            empty before the second measurement.
        passed: whether the last measurement passed.
    """

    probes_key: str
    vectors: bytes
    stored_at: datetime
    measured_at: datetime
    distances: tuple[float, ...]
    passed: bool


class ProbeTable:
    """Queries on `embedder_probes`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, embedders: Mapping[str, str]) -> dict[str, StoredProbes]:
        """Return the stored probes of these embedders, by tenant.

        Args:
            embedders: the embedder_id of each tenant.
        """
        columns = embedder_probes.c
        query = select(embedder_probes).where(
            tuple_(columns.tenant, columns.embedder_id).in_(list(embedders.items()))
        )
        with self._database.begin() as connection:
            return {row.tenant: _stored(row) for row in connection.execute(query)}

    def store(self, ref: TenantRef, embedder_id: str, probes: StoredProbes) -> None:
        """Store the reference vectors for comparison with later measurements."""
        values = {"vectors": probes.vectors, "stored_at": probes.stored_at, **_measurement(probes)}
        with self._database.begin_for(ref) as connection:
            connection.execute(
                upsert(embedder_probes)
                .values(tenant=ref.id, embedder_id=embedder_id, **values)
                .on_conflict_do_update(index_elements=["tenant", "embedder_id"], set_=values)
            )

    def record_measurement(self, ref: TenantRef, embedder_id: str, probes: StoredProbes) -> None:
        """Record the distances of a later measurement, and whether it passed."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                update(embedder_probes)
                .where(
                    embedder_probes.c.tenant == ref.id,
                    embedder_probes.c.embedder_id == embedder_id,
                )
                # Leave out the vectors, because Postgres would write them again.
                .values(**_measurement(probes))
            )

    def keep_only(self, ref: TenantRef, embedder_ids: Collection[str]) -> None:
        """Delete the probes of all other embedders, which have no vectors left."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                delete(embedder_probes).where(
                    embedder_probes.c.tenant == ref.id,
                    embedder_probes.c.embedder_id.not_in(list(embedder_ids)),
                )
            )


def _measurement(probes: StoredProbes) -> dict[str, Any]:
    return {
        "probes_key": probes.probes_key,
        "measured_at": probes.measured_at,
        "distances": list(probes.distances),
        "passed": probes.passed,
    }


def _stored(row: Row[Any]) -> StoredProbes:
    return StoredProbes(
        probes_key=row.probes_key,
        vectors=bytes(row.vectors),
        stored_at=row.stored_at,
        measured_at=row.measured_at,
        distances=tuple(row.distances),
        passed=row.passed,
    )
