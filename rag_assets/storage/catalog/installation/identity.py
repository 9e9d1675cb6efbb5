"""The identity of the installation in its catalog: id, locations of stores, home folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID, uuid4

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from rag_assets.storage.catalog.accounts.tables import panel_codes, panel_sessions, service_tokens
from rag_assets.storage.catalog.database import CatalogQueries, build_row_upsert
from rag_assets.storage.catalog.tables import (
    catalog_marks,
    generations,
    metadata,
    now_column,
    serving,
    tenants,
    time_column,
)

PlaceKind: TypeAlias = Literal["lake", "blobs", "index", "vectors", "cluster"]
"""Kinds of places (locations of stores); the address of `index` is a prefix of names, the address
of `cluster` is the cluster's id."""

installation = sa.Table(
    "installation",
    metadata,
    sa.Column("singleton", sa.Boolean, primary_key=True, server_default="true"),
    sa.Column("id", sa.Uuid, nullable=False),
    # The database in which the row was written; a copy of the catalog is in another database.
    sa.Column("database", sa.Text, nullable=False),
    now_column("created_at"),
    # Counts security changes; see security_changes.
    sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    # Whether a store has kept the epoch.
    sa.Column("epoch_kept", sa.Boolean, nullable=False, server_default="false"),
    sa.CheckConstraint("singleton", name="singleton"),
)
"""The identity of the installation."""

_SELECT_ROW = sa.select(installation.c.id, installation.c.database, installation.c.created_at)

places = sa.Table(
    "installation_places",
    metadata,
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("address", sa.Text, primary_key=True),
    now_column("recorded_at"),
    # When the installation moved its data elsewhere; null for the current place.
    time_column("left_at"),
    sa.CheckConstraint("kind IN ('lake', 'blobs', 'index', 'vectors', 'cluster')", name="kind"),
)
"""Locations of the installation's stores, present and former."""

homes = sa.Table(
    "installation_homes",
    metadata,
    sa.Column("id", sa.Uuid, primary_key=True),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    now_column("seen_at"),
)
"""Home folders that list tenants of the installation."""


@dataclass(frozen=True, slots=True)
class InstallationRow:
    """The identity of an installation."""

    id: UUID
    database: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Place:
    """A present or former address of a store of the installation.

    Attributes:
        address: without credentials.
    """

    kind: PlaceKind
    address: str
    left_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class InstallationState:
    """The catalog's record of the installation.

    Attributes:
        row: the installation's identity; None for a new catalog.
        present_database: system identifier and name of the database that holds the catalog now.
    """

    row: InstallationRow | None
    present_database: str
    places: Sequence[Place]

    @property
    def present_places(self) -> dict[PlaceKind, str]:
        """Return the address of each present place, by kind."""
        return {place.kind: place.address for place in self.places if place.left_at is None}


class InstallationTable(CatalogQueries):
    """Reads and changes the installation's id, places and home folders in the catalog."""

    def read(self) -> InstallationRow | None:
        """Return the identity; None for a catalog that no home folder has opened yet."""
        row = self._database.fetch_row(_SELECT_ROW)
        return InstallationRow(*row) if row else None

    def create(self, installation_id: UUID | None = None) -> InstallationRow:
        """Return the identity; create it if it is missing. Concurrent processes get the same id."""
        row = self.read()
        if row is not None:
            return row
        with self._database.begin() as connection:
            values = {"id": installation_id or uuid4(), "database": present_database(connection)}
            connection.execute(insert(installation).values(values).on_conflict_do_nothing())
        row = self.read()
        assert row is not None  # noqa: S101 - rows are never deleted
        return row

    def state(self) -> InstallationState:
        """Return the catalog's record of the installation, and the database that holds it."""
        with self._database.begin() as connection:
            row = connection.execute(_SELECT_ROW).first()
            return InstallationState(
                InstallationRow(*row) if row else None,
                present_database(connection),
                _list_places(connection),
            )

    def move_database(self) -> None:
        """Record that the catalog belongs to the current database, after it was moved there."""
        with self._database.begin() as connection:
            values = {"database": present_database(connection)}
            connection.execute(sa.update(installation).values(values))

    def replace(self, new_id: UUID, *, keeps_builds: bool) -> None:
        """Give a copied catalog a new id, and delete rows that refer to data of the original.

        These rows are the original's places and home folders, and the tokens and sessions that it
        issued.

        Args:
            keeps_builds: whether the indexes of the builds were copied too; otherwise the rows of
                the builds are deleted.
        """
        others = [places, homes, service_tokens, panel_codes, panel_sessions]
        with self._database.begin() as connection:
            values = {"id": new_id, "database": present_database(connection), "epoch_kept": False}
            connection.execute(sa.update(installation).values(values))
            connection.execute(sa.update(catalog_marks).values(kept=False))
            connection.execute(sa.update(tenants).values(home=None))
            for table in [*others, *([] if keeps_builds else [serving, generations])]:
                connection.execute(sa.delete(table))

    def places(self) -> list[Place]:
        """Return every present and former place, in the order in which they were recorded."""
        with self._database.begin() as connection:
            return _list_places(connection)

    def record_places(self, present: Iterable[Place]) -> None:
        """Record the current places; other places of the same kinds become former places."""
        with self._database.begin() as connection:
            for place in present:
                connection.execute(
                    sa.update(places)
                    .where(places.c.kind == place.kind, places.c.address != place.address)
                    .where(places.c.left_at.is_(None))
                    .values(left_at=sa.func.now())
                )
                connection.execute(
                    insert(places)
                    .values(kind=place.kind, address=place.address)
                    .on_conflict_do_update(
                        index_elements=["kind", "address"], set_={"left_at": None}
                    )
                )

    def record_former_places(self, former: Iterable[Place]) -> None:
        """Record former places of the installation that are missing from this catalog."""
        with self._database.begin() as connection:
            for place in former:
                row = {"kind": place.kind, "address": place.address, "left_at": sa.func.now()}
                connection.execute(insert(places).values(row).on_conflict_do_nothing())

    def leave_cluster(self) -> None:
        """Make the recorded Elasticsearch a former place.

        The cluster that is opened next is recorded instead.
        """
        is_present = (places.c.kind == "cluster") & places.c.left_at.is_(None)
        with self._database.begin() as connection:
            connection.execute(sa.update(places).where(is_present).values(left_at=sa.func.now()))

    def forget_place(self, place: Place) -> bool:
        """Forget a former place that is empty; return whether it was recorded."""
        forgotten = sa.delete(places).where(
            places.c.kind == place.kind,
            places.c.address == place.address,
            places.c.left_at.is_not(None),
        )
        with self._database.begin() as connection:
            return bool(connection.execute(forgotten).rowcount)

    def record_home(self, home_id: UUID, path: str, host: str) -> None:
        """Record that a home folder uses this catalog, and when."""
        values = {"path": path, "host": host, "seen_at": sa.func.now()}
        with self._database.begin() as connection:
            connection.execute(build_row_upsert(homes, {"id": home_id}, values))

    def find_home(self, path: str, host: str) -> UUID | None:
        """Return the id of the last recorded home folder with this path and host."""
        query = sa.select(homes.c.id).where(homes.c.path == path, homes.c.host == host)
        return self._database.fetch_value(query.order_by(homes.c.seen_at.desc()).limit(1))

    def describe_home(self, home_id: UUID) -> str:
        """Return the path and host of a home folder, for messages."""
        query = sa.select(homes.c.path, homes.c.host).where(homes.c.id == home_id)
        row = self._database.fetch_row(query)
        return f"{row.path} on {row.host}" if row else f"an unknown home ({home_id})"


def _list_places(connection: sa.Connection) -> list[Place]:
    query = sa.select(places.c.kind, places.c.address, places.c.left_at)
    rows = connection.execute(query.order_by(places.c.recorded_at, places.c.address))
    return [Place(*row) for row in rows]


def raise_epoch(connection: sa.Connection, at_least: int = 0) -> int:
    """Raise the installation's epoch; return the new epoch.

    Other transactions that raise it wait until this transaction ends.
    """
    above = sa.func.greatest(installation.c.epoch + 1, at_least)
    raised = sa.update(installation).values(epoch=above).returning(installation.c.epoch)
    epoch = connection.scalar(raised)
    if epoch is None:
        values = {"id": uuid4(), "database": present_database(connection)}
        connection.execute(insert(installation).values(values).on_conflict_do_nothing())
        epoch = connection.scalar(raised)
    return int(epoch or 0)


def present_database(connection: sa.Connection) -> str:
    """Return an id that distinguishes this database from a copy restored from a dump.

    It is "<system identifier>/<name>"; initdb creates the system identifier. If the role may not
    read the identifier, only the name distinguishes databases.
    """
    name = str(connection.scalar(sa.select(sa.func.current_database())))
    readable = sa.text("SELECT has_function_privilege('pg_control_system()', 'EXECUTE')")
    if not connection.scalar(readable):
        return f"unknown/{name}"
    system = connection.scalar(sa.text("SELECT system_identifier FROM pg_control_system()"))
    return f"{system}/{name}"
