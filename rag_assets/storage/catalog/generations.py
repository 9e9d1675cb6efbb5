"""A tenant's generations, and the serving one."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.tables import generations, serving

_KEY_BYTES = 32
GenerationState = Literal["BUILDING", "SERVING", "RETIRED", "REMOVING"]


@dataclass(frozen=True, slots=True)
class Generation:
    """One complete build of a tenant's index under one configuration.

    Attributes:
        number: counted per tenant, from 1.
        key: hash of what distinguishes generations: embedder, chunker, mapping, placement.
        index_name, index_identity: the index that holds its entries; an index created later under
            the same name has another identity.
        embedder_id: the embedder that made its vectors.
        embedder: configuration from which this embedder is constructed for queries.
        digest_key: key of its entries' digests, kept only in Postgres; None in generations of the
            first four schemas.
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


class GenerationTable:
    """Queries on `generations` and `serving`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def live(self, tenant_id: str) -> list[Generation]:
        """Every generation that may have entries, oldest first."""
        query = (
            select(generations)
            .where(generations.c.tenant == tenant_id)
            .order_by(generations.c.generation)
        )
        with self._database.begin() as connection:
            return [generation_of(row) for row in connection.execute(query)]

    def live_of(self, tenant_ids: Iterable[str]) -> dict[str, list[Generation]]:
        """Every generation of these tenants that may have entries, oldest first, by tenant."""
        query = (
            select(generations)
            .where(among(generations.c.tenant, tenant_ids))
            .order_by(generations.c.tenant, generations.c.generation)
        )
        found: dict[str, list[Generation]] = {}
        with self._database.begin() as connection:
            for row in connection.execute(query):
                found.setdefault(row.tenant, []).append(generation_of(row))
        return found

    def tenants(self) -> set[str]:
        """Tenants that have a generation."""
        with self._database.begin() as connection:
            return set(connection.scalars(select(generations.c.tenant).distinct()))

    def serving(self, tenant_id: str) -> Generation | None:
        """The serving generation with its index and embedder; None before the first is complete."""
        query = (
            select(generations)
            .join(
                serving,
                (serving.c.tenant == generations.c.tenant)
                & (serving.c.generation == generations.c.generation),
            )
            .where(serving.c.tenant == tenant_id)
        )
        with self._database.begin() as connection:
            row = connection.execute(query).first()
        return generation_of(row) if row else None

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
    ) -> Generation:
        """Create the next generation of a tenant, in the state BUILDING."""
        last = select(func.coalesce(func.max(generations.c.generation), 0)).where(
            generations.c.tenant == ref.id
        )
        with self._database.begin_for(ref) as connection:
            number = (connection.scalar(last) or 0) + 1
            row = connection.execute(
                insert(generations)
                .values(
                    tenant=ref.id,
                    generation=number,
                    generation_key=key,
                    index_name=index_name,
                    index_uuid=index_identity,
                    embedder_id=embedder_id,
                    embedder=dict(embedder),
                    dimensions=dimensions,
                    state="BUILDING",
                    digest_key=secrets.token_bytes(_KEY_BYTES),
                )
                .returning(generations)
            ).one()
        return generation_of(row)

    def publish(self, ref: TenantRef, generation: Generation) -> None:
        """Make this generation the serving one, and retire the former one."""
        row = {
            "generation": generation.number,
            "index_name": generation.index_name,
            "index_uuid": generation.index_identity,
            "embedder_id": generation.embedder_id,
        }
        with self._database.begin_for(ref) as connection:
            self._set_state(connection, ref, "RETIRED", generations.c.state == "SERVING")
            self._set_state(
                connection, ref, "SERVING", generations.c.generation == generation.number
            )
            connection.execute(
                upsert(serving)
                .values(tenant=ref.id, **row)
                .on_conflict_do_update(
                    index_elements=["tenant"], set_={**row, "published_at": func.now()}
                )
            )

    def move(
        self, ref: TenantRef, generation: Generation, index_name: str, index_identity: str
    ) -> None:
        """Record that a generation is now in another index."""
        place = {"index_name": index_name, "index_uuid": index_identity}
        with self._database.begin_for(ref) as connection:
            connection.execute(
                update(generations)
                .where(
                    generations.c.tenant == ref.id, generations.c.generation == generation.number
                )
                .values(**place)
            )
            connection.execute(
                update(serving)
                .where(serving.c.tenant == ref.id, serving.c.generation == generation.number)
                .values(**place)
            )

    def delete(self, ref: TenantRef, generation: Generation) -> None:
        """Delete the row of a generation whose entries are confirmed to be deleted."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                delete(generations).where(
                    generations.c.tenant == ref.id, generations.c.generation == generation.number
                )
            )

    def in_index(self, index_name: str) -> int:
        """The number of generations, of all tenants, in an index."""
        query = select(func.count()).where(generations.c.index_name == index_name)
        with self._database.begin() as connection:
            return connection.scalar(query) or 0

    def _set_state(self, connection: Any, ref: TenantRef, state: str, which: Any) -> None:
        retired = func.now() if state == "RETIRED" else None
        connection.execute(
            update(generations)
            .where(generations.c.tenant == ref.id, which)
            .values(state=state, retired_at=retired)
        )


def generation_of(row: Row[Any]) -> Generation:
    """The generation in a row with all columns of `generations`."""
    return Generation(
        number=row.generation,
        key=row.generation_key,
        index_name=row.index_name,
        index_identity=row.index_uuid,
        embedder_id=row.embedder_id,
        embedder=row.embedder,
        dimensions=row.dimensions,
        state=row.state,
        created_at=row.created_at,
        retired_at=row.retired_at,
        digest_key=None if row.digest_key is None else bytes(row.digest_key),
    )
