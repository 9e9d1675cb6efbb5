"""How fast former builds were made; plans estimate the duration of the next build from this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, update

from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import generations


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a build was made, measured in its largest slice, where fixed costs matter least.

    Attributes:
        texts, embedding_seconds: number of texts embedded in one slice, and the time it took.
        entries, writing_seconds: number of entries written in one slice, and the time it took.
    """

    texts: int = 0
    embedding_seconds: float = 0.0
    entries: int = 0
    writing_seconds: float = 0.0

    @property
    def texts_per_second(self) -> float | None:
        """Return the number of texts embedded per second; None if unknown."""
        return self.texts / self.embedding_seconds if self.embedding_seconds else None

    @property
    def entries_per_second(self) -> float | None:
        """Return the number of entries written per second; None if unknown."""
        return self.entries / self.writing_seconds if self.writing_seconds else None


class PaceTable:
    """Writes the columns of `generations` that contain the pace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record_embedding(self, ref: TenantRef, number: int, texts: int, seconds: float) -> None:
        """Record how long embedding a slice's texts took, if it is the build's largest slice."""
        self._record(ref, number, embedded_texts=texts, embedding_seconds=seconds)

    def record_writing(self, ref: TenantRef, number: int, entries: int, seconds: float) -> None:
        """Record how long writing a slice's entries took, if it is the build's largest slice."""
        self._record(ref, number, written_entries=entries, writing_seconds=seconds)

    def _record(self, ref: TenantRef, number: int, **largest: float) -> None:
        (counted, count), *_ = largest.items()
        build = (generations.c.tenant == ref.id, generations.c.generation == number)
        changed = (
            update(generations).where(*build, generations.c[counted] <= count).values(**largest)
        )
        with self._database.begin_for(ref) as connection:
            connection.execute(changed)


def pace_of(row: Row[Any]) -> Pace:
    """Return the pace in a row with all columns of `generations`."""
    return Pace(row.embedded_texts, row.embedding_seconds, row.written_entries, row.writing_seconds)
