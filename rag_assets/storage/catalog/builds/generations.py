"""A tenant's generations (builds): their states, their pace, the serving one and its pin."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, matches_any, read_row
from rag_assets.storage.catalog.installation.clock import select_time_to_record
from rag_assets.storage.catalog.tables import generations, serving, tenants


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a build, measured in its largest slice (the documents that one run processes).

    Fixed costs matter least in the largest slice.

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


class PaceTable(CatalogQueries):
    """Records how fast builds progress, in columns of `generations`."""

    def record_embedding(self, ref: TenantRef, number: int, texts: int, seconds: float) -> None:
        """Record how long embedding a slice's texts took, if it is the build's largest slice."""
        largest = {"embedded_texts": texts, "embedding_seconds": seconds}
        self._record(ref, number, generations.c.embedded_texts <= texts, largest)

    def record_writing(self, ref: TenantRef, number: int, entries: int, seconds: float) -> None:
        """Record how long writing a slice's entries took, if it is the build's largest slice."""
        largest = {"written_entries": entries, "writing_seconds": seconds}
        self._record(ref, number, generations.c.written_entries <= entries, largest)

    def _record(
        self,
        ref: TenantRef,
        number: int,
        is_largest: sa.ColumnElement[bool],
        largest: Mapping[str, float],
    ) -> None:
        is_build = generations.c.generation == number
        self._database.update(ref, generations, is_build, is_largest, **largest)


_PIN_COLUMNS = ("pinned_generation", "pinned_at", "pinned_by", "pin_reason")


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin: a person's choice of the build that answers, regardless of the configuration.

    Attributes:
        at: when it was pinned; None before the pin is stored.
    """

    generation: int
    by: str
    reason: str
    at: datetime | None = None


class PinTable(CatalogQueries):
    """Sets, deletes and finds the pin of a tenant, in columns of `serving`."""

    def set(self, ref: TenantRef, pin: Pin) -> None:
        """Record which build must answer searches; it starts to answer when it is up to date."""
        self._database.update(ref, serving, **build_pin_columns(pin))

    def delete(self, ref: TenantRef) -> None:
        """Delete the pin, if it exists."""
        self._database.update(ref, serving, **dict.fromkeys(_PIN_COLUMNS))

    def find(self, tenant_id: str) -> Pin | None:
        """Return a tenant's pin; None if no build is pinned."""
        query = sa.select(serving).where(
            serving.c.tenant == tenant_id, serving.c.pinned_generation.is_not(None)
        )
        row = self._database.fetch_row(query)
        if row is None:
            return None
        return Pin(row.pinned_generation, row.pinned_by, row.pin_reason, row.pinned_at)


def build_pin_columns(pin: Pin) -> dict[str, Any]:
    """Return the columns of `serving` for a pin that is set now."""
    values = (pin.generation, sa.func.now(), pin.by, pin.reason)
    return dict(zip(_PIN_COLUMNS, values, strict=True))


_KEY_BYTES = 32
GenerationState = Literal["BUILDING", "COMPLETE", "HELD", "SERVING", "RETIRED", "REMOVING"]
"""The states of a generation: BUILDING → COMPLETE → SERVING → RETIRED → REMOVING. A generation is
HELD if a check fails when it is COMPLETE."""

VectorsBeside = Literal["filling", "answering"]
"""State of the separate vector store of a build: "filling" while it lacks vectors, "answering" when
it has all of them and is used by searches."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One complete build of a tenant's index under one configuration: a row of `generations`.

    Attributes:
        number: counted per tenant, from 1.
        key: hash of the properties that distinguish generations: embedder, chunker, mapping,
            placement.
        index_name, index_identity: the index that holds its entries; an index created later under
            the same name has another identity.
        pinned: whether it must serve searches, even if the configuration asks for another build.
    """

    number: int
    key: str
    index_name: str
    index_identity: str
    embedder_id: str
    embedder: Mapping[str, Any]
    dimensions: int
    state: GenerationState
    created_at: datetime
    retired_at: datetime | None
    digest_key: bytes | None = field(default=None, repr=False, compare=False)
    recipe: Mapping[str, Any] | None = field(default=None, compare=False)
    pinned: bool = field(default=False, compare=False)
    reason: str | None = field(default=None, compare=False)
    completed_at: datetime | None = field(default=None, compare=False)
    published_at: datetime | None = field(default=None, compare=False)
    checks: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False)
    spent: float = field(default=0.0, compare=False)
    pace: Pace = field(default_factory=Pace, compare=False)
    vectors_beside: VectorsBeside | None = field(default=None, compare=False)
    vectors_retry_at: datetime | None = field(default=None, compare=False)
    thresholds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)


class GenerationTable(CatalogQueries):
    """Creates, finds, publishes and deletes generations, in `generations` and `serving`."""

    def live(self, tenant_id: str) -> list[Generation]:
        """Return a tenant's generations that may have entries in an index, oldest first."""
        return self.list_live_by_tenant([tenant_id]).get(tenant_id, [])

    def list_live_by_tenant(self, tenant_ids: Iterable[str]) -> dict[str, list[Generation]]:
        """Return these tenants' generations that may have entries, by tenant, oldest first."""
        query = (
            _select_with_pins()
            .where(matches_any(generations.c.tenant, tenant_ids))
            .order_by(generations.c.tenant, generations.c.generation)
        )
        by_tenant: dict[str, list[Generation]] = {}
        for row in self._database.fetch_rows(query):
            by_tenant.setdefault(row.tenant, []).append(read_generation(row))
        return by_tenant

    def tenants(self) -> set[str]:
        """Return the tenants that have a generation."""
        return set(self._database.fetch_values(sa.select(generations.c.tenant).distinct()))

    def indexes(self) -> dict[str, str]:
        """Return the identity of each index that contains builds, by index name."""
        query = sa.select(generations.c.index_name, generations.c.index_uuid).distinct()
        return {row.index_name: row.index_uuid for row in self._database.fetch_rows(query)}

    def list_with_separate_vectors(self) -> list[tuple[str, int, int]]:
        """Return (tenant, incarnation, number) of each build with separately stored vectors."""
        query = sa.select(tenants.c.id, tenants.c.incarnation, generations.c.generation).join(
            tenants, tenants.c.id == generations.c.tenant
        )
        rows = self._database.fetch_rows(query.where(generations.c.vectors_beside.is_not(None)))
        return [(row.id, row.incarnation, row.generation) for row in rows]

    def serving(self, tenant_id: str) -> Generation | None:
        """Return the serving generation; None before the first is published."""
        query = (
            sa.select(generations)
            .join(
                serving,
                (serving.c.tenant == generations.c.tenant)
                & (serving.c.generation == generations.c.generation),
            )
            .where(serving.c.tenant == tenant_id)
        )
        row = self._database.fetch_row(query)
        return read_generation(row) if row else None

    def create(
        self,
        ref: TenantRef,
        *,
        key: str,
        index_name: str,
        index_identity: str,
        embedder_id: str,
        embedder: Mapping[str, Any],
        dimensions: int,
        recipe: Mapping[str, Any],
    ) -> Generation:
        """Create the next generation of a tenant, in the state BUILDING.

        It inherits the measured thresholds of the last generation with the same embedder.
        """
        last = sa.select(sa.func.coalesce(sa.func.max(generations.c.generation), 0)).where(
            generations.c.tenant == ref.id
        )
        measured = (
            sa.select(generations.c.thresholds)
            .where(generations.c.tenant == ref.id, generations.c.embedder_id == embedder_id)
            .order_by(generations.c.generation.desc())
            .limit(1)
        )
        with self._database.begin_tenant(ref) as connection:
            number = (connection.scalar(last) or 0) + 1
            thresholds = connection.scalar(measured) or {}
            row = connection.execute(
                sa.insert(generations)
                .values(
                    tenant=ref.id,
                    generation=number,
                    generation_key=key,
                    index_name=index_name,
                    index_uuid=index_identity,
                    embedder_id=embedder_id,
                    embedder=dict(embedder),
                    dimensions=dimensions,
                    recipe=dict(recipe),
                    state="BUILDING",
                    thresholds=thresholds,
                    digest_key=secrets.token_bytes(_KEY_BYTES),
                )
                .returning(generations)
            ).one()
        return read_generation(row)

    def set_recipe(
        self, ref: TenantRef, generation: Generation, recipe: Mapping[str, Any]
    ) -> Generation:
        """Record the settings of a build; return the changed generation."""
        return self._change(ref, generation, {"recipe": dict(recipe)})

    def mark_complete(self, ref: TenantRef, generation: Generation) -> Generation:
        """Record that a build is complete; return the changed generation."""
        changed = {"state": "COMPLETE", "reason": None, "completed_at": select_time_to_record()}
        return self._change(ref, generation, changed)

    def hold(
        self,
        ref: TenantRef,
        generation: Generation,
        reason: str,
        checks: Sequence[Mapping[str, Any]],
    ) -> Generation:
        """Record why a complete build is not published; return the changed generation."""
        changed = {"state": "HELD", "reason": reason, "checks": [dict(check) for check in checks]}
        return self._change(ref, generation, changed)

    def reopen(self, ref: TenantRef, generation: Generation) -> Generation:
        """Record that a build must be completed and judged again; return the changed generation."""
        return self._change(ref, generation, {"state": "BUILDING", "reason": None})

    def begin_removal(self, ref: TenantRef, generation: Generation) -> Generation:
        """Record that the deletion of a build starts; return the changed generation."""
        return self._change(ref, generation, {"state": "REMOVING"})

    def set_vectors_state(
        self,
        ref: TenantRef,
        generation: Generation,
        state: VectorsBeside | None,
        *,
        retry_at: datetime | None = None,
    ) -> Generation:
        """Record the state of a build's separate vectors; return the changed generation."""
        changed = {"vectors_beside": state, "vectors_retry_at": retry_at}
        return self._change(ref, generation, changed)

    def publish(
        self,
        ref: TenantRef,
        generation: Generation,
        *,
        checks: Sequence[Mapping[str, Any]] | None = None,
        pin: Pin | None = None,
    ) -> None:
        """Make this generation serve searches, and retire the former serving generation.

        Args:
            pin: a pin to set in the same transaction; None leaves the current pin unchanged.
        """
        row: dict[str, Any] = {
            "generation": generation.number,
            "index_name": generation.index_name,
            "index_uuid": generation.index_identity,
            "embedder_id": generation.embedder_id,
            **({} if pin is None else build_pin_columns(pin)),
        }
        judged = {} if checks is None else {"checks": [dict(check) for check in checks]}
        with self._database.begin_tenant(ref) as connection:
            connection.execute(
                sa.update(generations)
                .where(generations.c.tenant == ref.id, generations.c.state == "SERVING")
                .values(state="RETIRED", retired_at=select_time_to_record())
            )
            connection.execute(
                sa.update(generations)
                .where(_is_generation(ref, generation))
                .values(
                    state="SERVING",
                    reason=None,
                    retired_at=None,
                    published_at=sa.func.now(),
                    **judged,
                )
            )
            connection.execute(
                upsert(serving)
                .values(tenant=ref.id, **row)
                .on_conflict_do_update(
                    index_elements=["tenant"], set_={**row, "published_at": sa.func.now()}
                )
            )

    def move(
        self, ref: TenantRef, generation: Generation, index_name: str, index_identity: str
    ) -> None:
        """Record that a generation has moved to a different index."""
        place = {"index_name": index_name, "index_uuid": index_identity}
        with self._database.begin_tenant(ref) as connection:
            connection.execute(
                sa.update(generations).where(_is_generation(ref, generation)).values(**place)
            )
            connection.execute(
                sa.update(serving)
                .where(serving.c.tenant == ref.id, serving.c.generation == generation.number)
                .values(**place)
            )

    def delete(self, ref: TenantRef, generation: Generation) -> None:
        """Delete the row of a generation, after the deletion of its entries was confirmed."""
        self._database.delete(ref, generations, generations.c.generation == generation.number)

    def count_in_index(self, index_name: str) -> int:
        """Return the number of all tenants' generations in an index."""
        query = sa.select(sa.func.count()).where(generations.c.index_name == index_name)
        return self._database.fetch_value(query) or 0

    def _change(
        self, ref: TenantRef, generation: Generation, values: Mapping[str, Any]
    ) -> Generation:
        changed = (
            sa.update(generations)
            .where(_is_generation(ref, generation))
            .values(**values)
            .returning(generations)
        )
        with self._database.begin_tenant(ref) as connection:
            row = connection.execute(changed).one()
        return replace(read_generation(row), pinned=generation.pinned)


def _select_with_pins() -> sa.Select[Any]:
    pinned = sa.func.coalesce(serving.c.pinned_generation == generations.c.generation, sa.false())
    return sa.select(generations, pinned.label("pinned")).outerjoin(
        serving, serving.c.tenant == generations.c.tenant
    )


def _is_generation(ref: TenantRef, generation: Generation) -> sa.ColumnElement[bool]:
    return sa.and_(generations.c.tenant == ref.id, generations.c.generation == generation.number)


def read_generation(row: sa.Row[Any]) -> Generation:
    """Return the generation in a row with all columns of `generations`."""
    return read_row(
        Generation,
        row,
        number=row.generation,
        key=row.generation_key,
        index_identity=row.index_uuid,
        digest_key=None if row.digest_key is None else bytes(row.digest_key),
        pinned=getattr(row, "pinned", False),
        spent=float(row.spent),
        pace=Pace(
            row.embedded_texts, row.embedding_seconds, row.written_entries, row.writing_seconds
        ),
    )
