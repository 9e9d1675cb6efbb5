"""How each tenant's embedder answered the canary's probes first, and how far it has moved."""

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
    """What is known of one embedder of a tenant.

    Attributes:
        vectors: of the probes as they were answered first, packed little-endian float32.
        distances: of the last answer from these, probe by probe; empty before there was another.
        passed: what was last concluded.
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

    def of(self, embedders: Mapping[str, str]) -> dict[str, StoredProbes]:
        """What is known of these embedders.

        Args:
            embedders: the id of each tenant's, by tenant.
        """
        columns = embedder_probes.c
        query = select(embedder_probes).where(
            tuple_(columns.tenant, columns.embedder_id).in_(list(embedders.items()))
        )
        with self._database.begin() as connection:
            return {row.tenant: _stored(row) for row in connection.execute(query)}

    def store(self, ref: TenantRef, embedder_id: str, probes: StoredProbes) -> None:
        """Take an answer for what later ones are compared with."""
        values = {"vectors": probes.vectors, "stored_at": probes.stored_at, **_changing(probes)}
        with self._database.begin_for(ref) as connection:
            connection.execute(
                upsert(embedder_probes)
                .values(tenant=ref.id, embedder_id=embedder_id, **values)
                .on_conflict_do_update(index_elements=["tenant", "embedder_id"], set_=values)
            )

    def note(self, ref: TenantRef, embedder_id: str, probes: StoredProbes) -> None:
        """Note how far a later answer is from the stored one, and what is concluded."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                update(embedder_probes)
                .where(
                    embedder_probes.c.tenant == ref.id,
                    embedder_probes.c.embedder_id == embedder_id,
                )
                # Not the vectors: Postgres would write all of them again.
                .values(**_changing(probes))
            )

    def keep_only(self, ref: TenantRef, embedder_ids: Collection[str]) -> None:
        """Forget embedders of which no vector is left, so that they may begin anew."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                delete(embedder_probes).where(
                    embedder_probes.c.tenant == ref.id,
                    embedder_probes.c.embedder_id.not_in(list(embedder_ids)),
                )
            )


def _changing(probes: StoredProbes) -> dict[str, Any]:
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
