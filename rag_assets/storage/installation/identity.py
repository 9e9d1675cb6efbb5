"""The gate to an installation: `open_catalog` requires that all of its parts belong together.

The catalog contains the installation's id. The home folder and the roots of lake and blobs have the
id in a marker, indexes in `_meta`, aliases in the name of their filter, and schemas of pgvector in
their comment. A copied catalog or home folder, a changed address, and a store of another
installation are refused before they are read or written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from rag_assets.common.errors import ForeignInstallation, PlaceChanged, RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.installation.identity import (
    InstallationRow,
    InstallationState,
    Place,
    PlaceKind,
)
from rag_assets.storage.index.model import Owner
from rag_assets.storage.index.store import VectorStore
from rag_assets.storage.installation.markers import Home, Root, open_roots, read_machine_name
from rag_assets.storage.lake.location import Location

VARIABLES: Final[Mapping[PlaceKind, str]] = {
    "lake": "RAG_ASSETS_LAKE_URL",
    "blobs": "RAG_ASSETS_BLOBS_URL",
    "index": "RAG_ASSETS_INDEX_PREFIX",
    "vectors": "RAG_ASSETS_PGVECTOR_URL",
    "cluster": "RAG_ASSETS_ELASTICSEARCH_URL",
}
"""The environment variable that sets the address of each kind of store."""
_OF_CATALOG: Final = "the catalog's database"
_MOVE_OR_CLONE: Final = (
    "if the original no longer exists, run `rag-assets installation move`; if it is still in"
    " use, run `rag-assets installation clone` to turn this copy into a separate installation"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """The installation that a process works for.

    Attributes:
        prefixes: prefixes of index names: the current prefix, then former prefixes.
    """

    id: UUID
    home: UUID
    prefixes: tuple[str, ...]
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the installation and the record in its catalog.

    Attributes:
        part: what differs: "catalog", "home", or the kind of a store (see PlaceKind).
        can_move: whether `installation move` resolves it.
    """

    part: str
    error: RagAssetsError
    can_move: bool = True


def open_catalog(
    settings: Settings,
    database_url: str,
    owner_url: str | None = None,
    *,
    before_upgrade: Callable[[Sequence[str]], None] | None = None,
) -> tuple[Catalog, Identity]:
    """Open the catalog, and require that the home folder and the stores belong to it.

    The first home folder that opens a new catalog makes it an installation.

    Raises:
        ForeignInstallation: the catalog, the home folder or a store belongs to another
            installation, or is a copy.
        PlaceChanged: a store's address differs from the recorded one.
        ServiceUnavailable: Postgres does not answer.
    """
    catalog = Catalog.open(database_url, owner_url, before_upgrade=before_upgrade)
    try:
        state, stores = catalog.installation.state(), open_roots(settings)
        _require_no_difference(find_differences(catalog, settings, state, stores))
        return catalog, _complete_identity(catalog, settings, state, stores)
    except BaseException:
        catalog.close()
        raise


def _require_no_difference(differences: Iterator[Difference]) -> None:
    for difference in differences:
        raise difference.error


def find_differences(
    catalog: Catalog, settings: Settings, state: InstallationState, stores: Sequence[Root]
) -> Iterator[Difference]:
    """Yield the parts that differ from the catalog's record, or belong to another installation."""
    row, home = state.row, Home(settings)
    if row is None:
        if home.installation is not None:
            yield Difference("catalog", _build_empty_catalog_error(settings, home.installation))
        has_tenants = bool(catalog.generations.tenants())
        yield from _iter_root_differences(stores, home.installation, may_adopt=has_tenants)
        return
    if state.present_database != row.database:
        yield Difference("catalog", _build_copied_catalog_error(row, state.present_database))
    if home.installation not in {None, row.id}:
        yield Difference("home", _build_foreign_home_error(settings, home, row.id), can_move=False)
    elif home.is_copy():
        yield Difference("home", _build_copied_home_error(settings, home))
    recorded = list_recorded_places(state, settings)
    for place in present_places(settings):
        former = recorded.get(place.kind)
        if former is not None and former != place.address:
            yield Difference(place.kind, _build_changed_place_error(row.id, place, former))
    yield from _iter_root_differences(stores, row.id, may_adopt="lake" not in recorded)
    for root in stores:
        is_recorded = root.kind == "blobs" and recorded.get(root.kind) == root.url
        is_empty = is_recorded and root.owner() is None and not root.has_data()
        if is_empty and catalog.uploads.has_any():
            yield Difference("blobs", _build_lost_uploads_error(row.id, root))


def _iter_root_differences(
    stores: Sequence[Root], installation: UUID | None, *, may_adopt: bool
) -> Iterator[Difference]:
    """Yield roots of other installations, and roots with data of an unknown owner.

    Args:
        installation: the required owner of the roots; None for a new installation.
        may_adopt: whether data without an owner is assumed to belong to this catalog, written by an
            earlier version of the program.
    """
    for root in stores:
        owner = root.owner()
        if owner is not None and owner != installation:
            yield Difference(
                root.kind, _build_foreign_root_error(root, owner, installation), can_move=False
            )
        elif owner is None and not may_adopt and root.has_data():
            yield Difference(root.kind, _build_foreign_root_error(root, None, installation))


def present_places(settings: Settings) -> list[Place]:
    """Return the addresses of the stores that the settings name, without credentials."""
    vectors = settings.vectors_url
    return [
        Place("lake", Location.parse(settings.lake_url).url),
        Place("blobs", settings.blobs_url),
        Place("index", settings.index_prefix),
        Place("vectors", _OF_CATALOG if vectors is None else _remove_credentials(vectors)),
    ]


def list_recorded_places(state: InstallationState, settings: Settings) -> dict[PlaceKind, str]:
    """Return the recorded address of each store, by kind.

    If the home folder was moved, addresses in the folder are returned with its new path.
    """
    recorded = state.present_places
    former, present = Home(settings).recorded_path, str(settings.home)
    if former is None or former == present:
        return recorded
    return {
        kind: present + address.removeprefix(former)
        if address.startswith(f"{former}/")
        else address
        for kind, address in recorded.items()
    }


def require_cluster(catalog: Catalog, store: VectorStore, identity: Identity) -> None:
    """Require that Elasticsearch is the cluster that the catalog records.

    If none is recorded yet, this cluster is recorded. Its indexes and schemas that an earlier
    version created without an owner are then marked as the installation's. A cluster that does not
    answer, or does not report its id, is not compared.

    Raises:
        PlaceChanged: the cluster is not the recorded one.
    """
    cluster = store.indexes.cluster_id()
    if cluster is None:
        return
    if identity.cluster is None:
        store.indexes.adopt(catalog.generations.indexes())
        owners = [Owner(*build) for build in catalog.generations.list_with_separate_vectors()]
        if owners and store.vectors is not None:
            store.vectors.adopt(owners)
        catalog.installation.record_places([Place("cluster", cluster)])
    elif identity.cluster != cluster:
        raise _build_changed_place_error(identity.id, Place("cluster", cluster), identity.cluster)


def _complete_identity(
    catalog: Catalog, settings: Settings, state: InstallationState, stores: Sequence[Root]
) -> Identity:
    """Record the identity wherever catalog, home or roots lack it; return the identity."""
    row, present = state.row, present_places(settings)
    if row is None:
        row = catalog.installation.create()
    if any(state.present_places.get(place.kind) != place.address for place in present):
        catalog.installation.record_places(present)
        state = catalog.installation.state()
    return _mark_parts(catalog, settings, row.id, state, stores)


def _mark_parts(
    catalog: Catalog,
    settings: Settings,
    installation: UUID,
    state: InstallationState,
    stores: Sequence[Root],
) -> Identity:
    """Mark the roots and the home folder as the installation's; return its identity.

    Former places that a root's marker lists, but a restored catalog lacks, are recorded again.
    """
    known = {(place.kind, place.address) for place in state.places}
    own = [root for root in stores if root.owner() == installation]
    if lost := {place for root in own for place in root.former_places()} - known:
        catalog.installation.record_former_places([Place(*place) for place in sorted(lost)])
        state = catalog.installation.state()
    former = {place for place in state.places if place.left_at is not None}
    for root in stores:
        if (address := root.former_address()) is not None:
            catalog.installation.forget_place(Place(root.kind, address))
            former = {p for p in former if (p.kind, p.address) != (root.kind, address)}
    for root in stores:
        root.mark(installation, former)
    home = Home(settings)
    is_recorded = home.installation == installation and home.recorded_path == str(settings.home)
    path, machine = str(settings.home), read_machine_name()
    if is_recorded:
        home_id = home.join(installation, None)
    else:
        home_id = home.join(installation, catalog.installation.find_home(path, machine))
        catalog.installation.record_home(home_id, path, machine)
    recorded = [place.address for place in state.places if place.kind == "index"]
    prefixes = dict.fromkeys([settings.index_prefix, *recorded])
    cluster = state.present_places.get("cluster")
    return Identity(installation, home_id, tuple(prefixes), cluster)


def move_installation(catalog: Catalog, settings: Settings) -> Identity:
    """Record that the catalog, the home folder and the stores belong together as they are now.

    Raises:
        ForeignInstallation: the home folder or a store belongs to another installation.
    """
    stores = open_roots(settings)
    state = catalog.installation.state()
    for difference in find_differences(catalog, settings, state, stores):
        if not difference.can_move:
            raise difference.error
    row = catalog.installation.create(Home(settings).installation)
    catalog.installation.move_database()
    catalog.installation.leave_cluster()
    catalog.installation.record_places(present_places(settings))
    return _mark_parts(catalog, settings, row.id, catalog.installation.state(), stores)


def forget_place(catalog: Catalog, settings: Settings, place: Place) -> bool:
    """Delete the record of a destroyed former place; return whether it was recorded."""
    is_forgotten = catalog.installation.forget_place(place)
    former = [p for p in catalog.installation.places() if p.left_at is not None]
    row = catalog.installation.read()
    for root in open_roots(settings):
        if row is not None and root.owner() == row.id:
            root.mark(row.id, former)
    return is_forgotten


def clone_installation(
    catalog: Catalog, settings: Settings, *, keeps_builds: bool, is_snapshot: bool = False
) -> Identity:
    """Make a copied catalog a separate installation; an interrupted clone is continued.

    Args:
        keeps_builds: whether Elasticsearch was copied, too. Otherwise builds are forgotten, and the
            next syncs write new indexes from the lake.
        is_snapshot: whether a person has confirmed that the catalog is a copy, although its server
            and database have the original's identity, as after restoring a snapshot.

    Raises:
        ForeignInstallation: the catalog is not a copy, or a store is in use by the original or
            belongs to another installation.
    """
    original, home = catalog.installation.create().id, Home(settings)
    planned = home.find_planned_clone(original)
    if planned is None and not is_snapshot:
        _require_copied_catalog(catalog, settings, home)
    clone, stores = planned or uuid4(), open_roots(settings)
    for root in stores:
        owner = root.owner()
        is_usable = root.is_copy() if owner == original else owner in {None, clone}
        if not is_usable or (owner is None and root.has_data()):
            raise _build_foreign_root_error(root, owner, None)
    home.join(clone, None, clone_of=original)
    for root in stores:
        root.mark(clone)
    catalog.installation.replace(clone, keeps_builds=keeps_builds)
    catalog.installation.record_places(present_places(settings))
    return _mark_parts(catalog, settings, clone, catalog.installation.state(), stores)


def _require_copied_catalog(catalog: Catalog, settings: Settings, home: Home) -> None:
    state = catalog.installation.state()
    if state.row is None or state.present_database != state.row.database:
        return
    if settings.database_url is None and home.is_copy():
        return  # The embedded server was copied with its home folder.
    raise ForeignInstallation(
        f"the catalog belongs to {_describe(state.row.id)} itself, and is not a copy",
        hint="set RAG_ASSETS_DATABASE_URL to a copy of it; if it is a copy, from a snapshot of"
        " the whole server, run `rag-assets installation clone --yes --snapshot`",
    )


def _describe(installation: UUID | None) -> str:
    return f"installation {installation}" if installation else "an unknown installation"


def _build_foreign_root_error(
    root: Root, owner: UUID | None, installation: UUID | None
) -> ForeignInstallation:
    hint = f"set {VARIABLES[root.kind]} to an empty location"
    if owner is None:
        hint += (
            "; or, if the data belong to this installation, run `rag-assets installation move"
            " --yes`"
        )
    ours = f", but this is {_describe(installation)}" if installation else ""
    return ForeignInstallation(
        f"the {root.kind} at {root.url} belongs to {_describe(owner)}{ours}", hint=hint
    )


def _build_lost_uploads_error(installation: UUID, root: Root) -> PlaceChanged:
    return PlaceChanged(
        f"{_describe(installation)} has uploaded files, but there are none at {root.url}: its disk"
        " is not mounted, or the folder was deleted",
        hint="mount it, or copy the files back from a backup; if they are lost for good, run"
        " `rag-assets installation move --yes --without-data blobs`",
    )


def _build_foreign_home_error(
    settings: Settings, home: Home, installation: UUID
) -> ForeignInstallation:
    return ForeignInstallation(
        f"the home folder {settings.home} belongs to {_describe(home.installation)}, but the"
        f" catalog belongs to {_describe(installation)}",
        hint="correct RAG_ASSETS_DATABASE_URL or RAG_ASSETS_HOME; or, if this home folder is to"
        f" belong to the other installation from now on, remove {home.file}",
    )


def _build_copied_home_error(settings: Settings, home: Home) -> ForeignInstallation:
    return ForeignInstallation(
        f"the home folder {settings.home} is a copy of {home.recorded_path}, of"
        f" {_describe(home.installation)}",
        hint=_MOVE_OR_CLONE,
    )


def _build_copied_catalog_error(row: InstallationRow, present: str) -> ForeignInstallation:
    return ForeignInstallation(
        f"the catalog is a copy: the catalog of {_describe(row.id)} is in database {row.database},"
        f" but this is database {present}",
        hint=_MOVE_OR_CLONE,
    )


def _build_empty_catalog_error(settings: Settings, owner: UUID) -> ForeignInstallation:
    return ForeignInstallation(
        f"the catalog is empty, but the home folder {settings.home} belongs to {_describe(owner)}",
        hint="correct RAG_ASSETS_DATABASE_URL, or restore a dump of its catalog; to begin with an"
        " empty catalog, run `rag-assets installation move --yes`",
    )


def _build_changed_place_error(
    installation: UUID | None, place: Place, former: str
) -> PlaceChanged:
    return PlaceChanged(
        f"{_describe(installation)} has its {place.kind} at {former}, not at {place.address}",
        hint=f"set {VARIABLES[place.kind]} to its former value; or, if the data have moved, run"
        " `rag-assets installation move`",
    )


def _remove_credentials(url: str) -> str:
    address = urlsplit(re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql://", url))
    host = (address.hostname or "") + (f":{address.port}" if address.port else "")
    return f"postgresql://{host}{address.path}"
