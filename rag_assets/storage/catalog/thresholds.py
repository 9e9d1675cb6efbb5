"""Measured thresholds of builds, and the floors of the questions that calibrate them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import insert, select, update

from rag_assets.common.hashing import sha256_hex
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.tables import events, generations

_KEY_DIGITS = 16


class ThresholdTable:
    """Writes the column `thresholds` of `generations`.

    For each use of a search, the column contains either `floors`, by a digest of each calibrating
    question, or `value`, `reason`, `by`, `at` and `questions`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_floor(
        self, ref: TenantRef, number: int, use: str, question: str, floor: float
    ) -> Mapping[str, float]:
        """Record the floor of a question, unless a value is set.

        Returns:
            the floors of all questions so far; empty if a value is set.
        """
        build = (generations.c.tenant == ref.id, generations.c.generation == number)
        query = select(generations.c.thresholds).where(*build).with_for_update()
        with self._database.begin_for(ref) as connection:
            thresholds: dict[str, Any] | None = connection.scalar(query)
            present = (thresholds or {}).get(use, {})
            if thresholds is None or "value" in present:
                return {}
            key = sha256_hex(question)[:_KEY_DIGITS]
            floors: dict[str, float] = {**present.get("floors", {}), key: round(floor, 6)}
            changed = {**thresholds, use: {"floors": floors}}
            connection.execute(update(generations).where(*build).values(thresholds=changed))
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
        """Set the threshold of all builds with an embedder; None restarts the calibration.

        The event `settings_changed` records who set which value.
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
        query = select(generations.c.generation, generations.c.thresholds).where(*builds)
        with self._database.begin_for(ref) as connection:
            for number, thresholds in connection.execute(query.with_for_update()).all():
                changed = {name: kept for name, kept in thresholds.items() if name != use}
                changed |= {} if row is None else {use: row}
                one = (*builds, generations.c.generation == number)
                connection.execute(update(generations).where(*one).values(thresholds=changed))
            payload = {"by": by, "changed": ["threshold"], "use": use, "value": value}
            event = {"tenant": ref.id, "kind": "settings_changed", "payload": payload}
            connection.execute(insert(events).values(event))


def measured_value(generation: Generation, use: str | None) -> float | None:
    """Return the threshold that is set for a use of a build; None if it is not set."""
    value: float | None = generation.thresholds.get(use or "", {}).get("value")
    return value


def measured_floors(generation: Generation, use: str | None) -> Mapping[str, float]:
    """Return the floors of the questions that have calibrated a use of a build so far."""
    floors: Mapping[str, float] = generation.thresholds.get(use or "", {}).get("floors", {})
    return floors
