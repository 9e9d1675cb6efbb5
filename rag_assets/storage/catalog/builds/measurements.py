"""Measurements of embedders and builds: canary probes, and thresholds of searches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from rag_assets.common.hashing import sha256_hex
from rag_assets.storage.catalog.accounts.tables import embedder_probes
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    build_row_upsert,
    read_row,
    write_event,
)
from rag_assets.storage.catalog.tables import generations


@dataclass(frozen=True, slots=True)
class StoredProbes:
    """The stored probes of one embedder of a tenant.

    Attributes:
        vectors: vectors of the first measurement, packed little-endian float32.
        distances: distances between the vectors of the first and of the last measurement, by probe;
            empty before the second measurement.
    """

    probes_key: str
    vectors: bytes
    stored_at: datetime
    measured_at: datetime
    distances: tuple[float, ...]
    passed: bool


class ProbeTable(CatalogQueries):
    """Stores and finds the canary probes of embedders, in `embedder_probes`."""

    def find(self, embedders: Mapping[str, str]) -> dict[str, StoredProbes]:
        """Return the stored probes of these embedders, by tenant.

        Args:
            embedders: the embedder_id of each tenant.
        """
        columns = embedder_probes.c
        query = sa.select(embedder_probes).where(
            sa.tuple_(columns.tenant, columns.embedder_id).in_(list(embedders.items()))
        )
        return {
            row.tenant: read_row(
                StoredProbes, row, vectors=bytes(row.vectors), distances=tuple(row.distances)
            )
            for row in self._database.fetch_rows(query)
        }

    def store(self, ref: TenantRef, embedder_id: str, probes: StoredProbes) -> None:
        """Store the vectors of a first measurement, with which later measurements are compared."""
        values = {**asdict(probes), "distances": list(probes.distances)}
        key = {"tenant": ref.id, "embedder_id": embedder_id}
        self._database.write(ref, build_row_upsert(embedder_probes, key, values))

    def record_measurement(self, ref: TenantRef, embedder_id: str, probes: StoredProbes) -> None:
        """Record a later measurement: its distances from the first one, and whether it passed."""
        values = {**asdict(probes), "distances": list(probes.distances)}
        # Leave out the vectors, because Postgres would write them again.
        measured = {name: values[name] for name in values if name not in {"vectors", "stored_at"}}
        is_probe = embedder_probes.c.embedder_id == embedder_id
        self._database.update(ref, embedder_probes, is_probe, **measured)

    def keep_only(self, ref: TenantRef, embedder_ids: Collection[str]) -> None:
        """Delete the probes of all embedders except these."""
        is_other = embedder_probes.c.embedder_id.not_in(list(embedder_ids))
        self._database.delete(ref, embedder_probes, is_other)


_KEY_DIGITS = 16


class ThresholdTable(CatalogQueries):
    """Records the thresholds of searches, in the column `thresholds` of `generations`.

    The column is a JSON object with one entry for each purpose that a search request can name (its
    `use`). During calibration, the entry has only `floors`, by a digest of each question. Once the
    threshold is set, it has `value`, `reason`, `by`, `at` and `questions` instead.
    """

    def add_floor(
        self, ref: TenantRef, number: int, use: str, question: str, floor: float
    ) -> Mapping[str, float]:
        """Record a question's floor to calibrate a threshold; do nothing if the threshold is set.

        Args:
            floor: the cosine above which a passage is better than chance (see
                compute_question_floor).

        Returns:
            the floors of all questions so far, by a digest of the question; empty if a threshold is
            set.
        """
        build = (generations.c.tenant == ref.id, generations.c.generation == number)
        query = sa.select(generations.c.thresholds).where(*build).with_for_update()
        with self._database.begin_tenant(ref) as connection:
            thresholds: dict[str, Any] | None = connection.scalar(query)
            present = (thresholds or {}).get(use, {})
            if thresholds is None or "value" in present:
                return {}
            key = sha256_hex(question)[:_KEY_DIGITS]
            floors: dict[str, float] = {**present.get("floors", {}), key: round(floor, 6)}
            changed = {**thresholds, use: {"floors": floors}}
            connection.execute(sa.update(generations).where(*build).values(thresholds=changed))
        return floors

    def set_value(
        self,
        ref: TenantRef,
        embedder_id: str,
        use: str,
        value: float | None,
        *,
        reason: str,
        by: str,
        questions: int,
    ) -> None:
        """Set the threshold for one use of searches, in all builds with an embedder.

        Args:
            value: the cosine; None deletes the threshold, so that it is calibrated again.
        """
        row = (
            None
            if value is None
            else {
                "value": round(value, 6),
                "reason": reason,
                "by": by,
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "questions": questions,
            }
        )
        builds = (generations.c.tenant == ref.id, generations.c.embedder_id == embedder_id)
        query = sa.select(generations.c.generation, generations.c.thresholds).where(*builds)
        with self._database.begin_tenant(ref) as connection:
            for number, thresholds in connection.execute(query.with_for_update()).all():
                changed = {name: threshold for name, threshold in thresholds.items() if name != use}
                changed |= {} if row is None else {use: row}
                one = (*builds, generations.c.generation == number)
                connection.execute(sa.update(generations).where(*one).values(thresholds=changed))
            payload = {"by": by, "changed": ["threshold"], "use": use, "value": value}
            write_event(connection, ref.id, "settings_changed", payload)


def get_measured_threshold(generation: Generation, use: str | None) -> float | None:
    """Return the threshold of a build for one use of searches; None if it is not set."""
    value: float | None = generation.thresholds.get(use or "", {}).get("value")
    return value


def get_measured_floors(generation: Generation, use: str | None) -> Mapping[str, float]:
    """Return the floors recorded so far for the calibration of a use's threshold, by question."""
    floors: Mapping[str, float] = generation.thresholds.get(use or "", {}).get("floors", {})
    return floors
