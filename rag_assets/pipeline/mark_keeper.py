"""Marks in the stores: they detect a catalog that was restored from an earlier dump.

The catalog counts the changes of each tenant (the tenant's mark) and the security changes of the
installation (the epoch), which it also lists in a journal. After each commit that raises a mark or
the epoch, lake, blobs and index store a copy. A copy that is newer than the catalog proves that the
catalog has lost changes. An older copy, for example after a crash between the commit and the
copying, is updated when it is read.

While the catalog lacks changes, nothing is deleted: data that seem unreferenced may be the last
copy of the newest documents.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from rag_assets.common.errors import (
    CatalogSetBack,
    RagAssetsError,
    RestorePending,
    ServiceUnavailable,
)
from rag_assets.common.formatting import format_count
from rag_assets.common.tenant_folders import tenant_folder
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.builds.syncs import Sync
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.journal.security_changes import (
    CatalogMark,
    Mark,
    SecurityChange,
    SecurityState,
    format_changes,
    parse_changes,
)
from rag_assets.storage.index.store import NoteStore, VectorStore
from rag_assets.storage.lake.store import Lake

if TYPE_CHECKING:
    from rag_assets.pipeline.context import TenantContext


_LOGGER: Final = logging.getLogger("rag_assets.marks")
_MARK: Final = "catalog_mark.json"
_JOURNAL: Final = "security_journal.json"
_PAUSE_SECONDS: Final = 60.0
"""Pause of requests to a store that did not answer."""
_ROUNDS: Final = 5

StoreName: TypeAlias = Literal["lake", "blobs", "index"]
Standing: TypeAlias = Literal["current", "set back", "unknown"]
"""Whether a catalog lacks changes; unknown: the stores have data, but have lost every copy of the
mark."""


@dataclass(frozen=True, slots=True)
class KeptMark:
    """A store's copy of a tenant's mark.

    Attributes:
        set_back: whether the catalog was found to lack changes, and nobody has accepted that yet.
            The flag is needed because later changes raise the catalog's own mark above this mark.
        forgotten: whether an operator has accepted that the catalog does not know the tenant.
    """

    mark: Mark
    set_back: bool = False
    forgotten: bool = False

    @classmethod
    def parse(cls, text: str | None) -> KeptMark | None:
        """Return the mark in a store's note; None if the note is missing or damaged."""
        try:
            fields = json.loads(text or "")
            mark = Mark(int(fields["mark"]), fields.get("tag"))
            return cls(mark, bool(fields["set_back"]), bool(fields.get("forgotten")))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def as_json(self) -> str:
        """Return the mark as the text of a note, for a store."""
        return json.dumps(
            {
                "mark": self.mark.number,
                "tag": self.mark.tag,
                "set_back": self.set_back,
                "forgotten": self.forgotten,
            }
        )

    def is_ahead_of(self, mark: Mark) -> bool:
        """Return whether this mark counts changes that a catalog with the given mark lacks."""
        if self.mark.number == mark.number:
            return None not in (self.mark.tag, mark.tag) and self.mark.tag != mark.tag
        return self.mark.number > mark.number


@dataclass(frozen=True, slots=True)
class SecurityStanding:
    """The result of comparing the catalog's security changes with the stores' journals.

    Attributes:
        lost: the missing changes, oldest first; only those that the stores' copies of the journal
            still contain.
    """

    standing: Standing
    lost: Sequence[SecurityChange] = ()


class CatalogMarkKeeper:
    """Keeps copies of the catalog's marks and journal in the stores, and compares them with it.

    A store that does not answer is skipped: one copy is enough to detect a restored catalog. If no
    store answers, methods raise ServiceUnavailable.

    Args:
        store: opens the index when it is first needed.
    """

    def __init__(
        self, catalog: Catalog, lake: Lake, blobs: BlobStore, store: Callable[[], VectorStore]
    ) -> None:
        self._catalog = catalog
        self._lake = lake
        self._blobs = blobs
        self._store = store
        self._paused_until: dict[StoreName, float] = {}

    def keep(self, raised: Collection[TenantRef | None]) -> None:
        """Copy the marks that a transaction raised to the stores (see Database.after_raise)."""
        try:
            for ref in raised:
                if ref is None:
                    self.compare_security_changes()
                else:
                    self.compare_marks(ref)
        except Exception as error:
            # The change itself is committed. The next reader updates the copies of the mark.
            reason = error.message if isinstance(error, RagAssetsError) else type(error).__name__
            _LOGGER.warning("a mark of the catalog could not be stored yet: %s", reason)

    # -- tenants

    def find_deletion_refusal(self, ref: TenantRef) -> CatalogSetBack | None:
        """Return why a tenant's data must not be deleted; None if it may be deleted."""
        pending = self.find_pending_restore()
        if pending is not None:
            return pending
        standing = self.compare_marks(ref)
        if standing == "current":
            return None
        reasons = {
            "set back": f"the catalog of tenant {ref.id!r} was set back to an earlier state",
            "unknown": f"tenant {ref.id!r} has data, but no store has the mark of its catalog:"
            " the catalog may come from an earlier dump",
        }
        return CatalogSetBack(
            reasons[standing],
            hint="no data of the tenant is deleted, swept or pruned until the catalog is accepted."
            f" To go on with this catalog, run: rag-assets sync {ref.id} --accept-catalog",
        )

    def compare_marks(self, ref: TenantRef) -> Standing:
        """Compare a tenant's mark with the stores' copies, and update older copies."""
        name = _build_mark_name(ref)
        for _ in range(_ROUNDS):
            # Read the copies first: the catalog's mark can only grow between the two reads.
            copies = {place: KeptMark.parse(text) for place, text in self._read_note(name).items()}
            own = self._catalog.marks.read(ref)
            if own is None:
                return "current"
            if any(k.set_back or k.is_ahead_of(own.mark) for k in copies.values() if k):
                self._flag_as_set_back(name, copies)
                return "set back"
            if own.was_kept and not any(copies.values()) and self._has_data(ref):
                return "unknown"
            if self._update_copies(ref, own, copies):
                break
        return "current"

    def _update_copies(
        self, ref: TenantRef, own: CatalogMark, copies: Mapping[StoreName, KeptMark | None]
    ) -> bool:
        """Update older copies; return whether the catalog's mark stayed the same meanwhile."""
        behind = [place for place, k in copies.items() if k is None or k.mark != own.mark]
        if not behind:
            return True
        text = KeptMark(own.mark).as_json()
        written = [
            place for place in behind if self._write_note(place, _build_mark_name(ref), text)
        ]
        if written and not own.was_kept:
            self._catalog.marks.record_stored_mark(ref)
        present = self._catalog.marks.read(ref)
        return present is None or present.mark == own.mark

    def _flag_as_set_back(self, name: str, copies: Mapping[StoreName, KeptMark | None]) -> None:
        """Flag a mark in each store as set back, because later changes would hide the loss."""
        highest = max((k.mark for k in copies.values() if k), key=lambda mark: mark.number)
        for place, present in copies.items():
            if present is None or not present.set_back:
                mark = highest if present is None else present.mark
                self._write_note(place, name, KeptMark(mark, set_back=True).as_json())

    def _has_data(self, ref: TenantRef) -> bool:
        if not self._lake.tenant(ref.id, ref.incarnation).is_empty():
            return True
        if any(True for _ in self._blobs.tenant(ref.id, ref.incarnation).all()):
            return True
        indexes, owner = self._store().indexes, (ref.id, ref.incarnation)
        return any(owner in indexes.owners(name) for name in indexes.names())

    def accept(self, ref: TenantRef) -> bool:
        """Accept that the catalog lacks changes of a tenant; return whether it lacked any."""
        if self.compare_marks(ref) == "current":
            return False
        name = _build_mark_name(ref)
        stores = [self._get_notes(place) for place in ("lake", "blobs", "index")]
        copies = [KeptMark.parse(notes.read(name)) for notes in stores]
        highest = max((k.mark.number for k in copies if k), default=0)
        self._catalog.marks.advance_mark(ref, highest)
        own = self._catalog.marks.read(ref)
        if own is not None:
            for notes in stores:
                notes.write(name, KeptMark(own.mark).as_json())
        return True

    def forget(self, ref: TenantRef) -> None:
        """Delete a removed tenant's mark in the index; the other copies lay in its folders."""
        self._get_notes("index").delete(_build_mark_name(ref))

    # -- tenants that the catalog does not know

    def is_stray(self, tenant_id: str, incarnation: int) -> bool:
        """Return whether data of a tenant is left over from a removed tenant, and may be deleted.

        If no receipt of the removal exists, the data may belong to a tenant that the catalog has
        lost. It then does not count as left over until an operator accepts the loss.
        """
        # Read this after the data was found: an incarnation that is unknown now never comes into
        # existence, even if a tenant with this id is added in the meantime.
        record = self._catalog.tenants.find(tenant_id)
        if record is not None and record.incarnation == incarnation:
            return False
        if self.was_removed(tenant_id, incarnation):
            return True
        notes = self._read_note(_build_mark_name(TenantRef(tenant_id, incarnation))).values()
        return any(kept_mark.forgotten for text in notes if (kept_mark := KeptMark.parse(text)))

    def was_removed(self, tenant_id: str, incarnation: int | None = None) -> bool:
        """Return whether a receipt proves the removal of this incarnation (None: of any)."""
        receipts = self._catalog.receipts.all(tenant_id)
        removals = {receipt.incarnation for receipt in receipts if receipt.kind == "removal"}
        return bool(removals) if incarnation is None else incarnation in removals

    def list_unknown_tenants(self) -> list[TenantRef]:
        """Return the tenants that have data in the stores, but that the catalog may have lost."""
        stored_tenants = {*self._lake.incarnations(), *self._blobs.incarnations()}
        indexes = self._store().indexes
        for name in indexes.names():
            stored_tenants.update(indexes.owners(name))
        known = {(record.id, record.incarnation) for record in self._catalog.tenants.all()}
        return [
            TenantRef(*owner)
            for owner in sorted(stored_tenants - known)
            if not self.is_stray(*owner)
        ]

    def forget_unknown(self) -> list[str]:
        """Allow the data of tenants that the catalog has lost to be deleted; return their ids."""
        unknown = self.list_unknown_tenants()
        for ref in unknown:
            for place in ("lake", "blobs", "index"):
                self._get_notes(place).write(
                    _build_mark_name(ref), KeptMark(Mark(0), forgotten=True).as_json()
                )
        return [ref.id for ref in unknown]

    # -- security changes

    def security_state(self) -> SecurityState:
        """Return the catalog's epoch and its newest security change."""
        return self._catalog.security.state()

    def find_pending_restore(self) -> RestorePending | None:
        """Return why tokens, grants and holds are not trusted; None if they are."""
        comparison = self.compare_security_changes()
        if comparison.standing == "current":
            return None
        reasons = {
            "set back": "the catalog was restored from an earlier dump:"
            f" {len(comparison.lost)} changes of tokens, grants, holds or erasures are lost",
            "unknown": "no store has the journal of security changes: the catalog may come from an"
            " earlier dump",
        }
        return RestorePending(
            reasons[comparison.standing],
            hint="no token is accepted and no data is deleted until an operator has run `rag-assets"
            " installation accept-restore`, which shows the lost changes",
        )

    def compare_security_changes(self) -> SecurityStanding:
        """Compare security changes with the stores' journals, and update older journals."""
        table = self._catalog.security
        for _ in range(_ROUNDS):
            journals = {
                place: parse_changes(text or "")
                for place, text in self._read_note(_JOURNAL).items()
            }
            state = table.state()
            journaled = {change.id: change for journal in journals.values() for change in journal}
            if lost := table.find_missing(journaled.values()):
                return SecurityStanding("set back", lost)
            if state.was_kept and not journaled:
                return SecurityStanding("unknown")
            if not state.epoch or self._update_journals(state, journals):
                break
        return SecurityStanding("current")

    def accept_security(self, lost: Sequence[SecurityChange]) -> None:
        """Accept a catalog that lacks security changes, and copy its journal to the stores."""
        self._catalog.security.accept(lost)
        text = format_changes(self._catalog.security.newest())
        self._read_note(_JOURNAL)
        for place in [*self._list_answering_stores()]:
            self._write_note(place, _JOURNAL, text)

    def _update_journals(
        self, state: SecurityState, journals: Mapping[StoreName, Sequence[SecurityChange]]
    ) -> bool:
        """Update older journals; return whether the catalog's epoch is still the same."""
        behind = [
            place
            for place, journal in journals.items()
            if not journal or journal[-1].epoch < state.epoch
        ]
        if not behind:
            return True
        text = format_changes(self._catalog.security.newest())
        written = [place for place in behind if self._write_note(place, _JOURNAL, text)]
        if written and not state.was_kept:
            self._catalog.security.record_stored_journal()
        return self._catalog.security.state().epoch == state.epoch

    # -- stores

    def _get_notes(self, place: StoreName) -> NoteStore:
        match place:
            case "lake":
                return self._lake.notes
            case "blobs":
                return self._blobs.notes
        return self._store().notes

    def _list_answering_stores(self) -> Iterator[StoreName]:
        now = time.monotonic()
        places: tuple[StoreName, ...] = ("lake", "blobs", "index")
        yield from (place for place in places if self._paused_until.get(place, 0.0) <= now)

    def _read_note(self, name: str) -> dict[StoreName, str | None]:
        """Return a note, or None if it is missing, from each store that answers."""
        notes: dict[StoreName, str | None] = {}
        for place in [*self._list_answering_stores()]:
            try:
                notes[place] = self._get_notes(place).read(name)
            except RagAssetsError as error:
                self._pause_store(place, error)
        if not notes:
            self._paused_until.clear()
            raise ServiceUnavailable(
                "no store that keeps the marks of the catalog answers",
                hint="check that the lake, the store of uploaded files or Elasticsearch can be"
                " reached",
            )
        return notes

    def _write_note(self, place: StoreName, name: str, text: str) -> bool:
        try:
            self._get_notes(place).write(name, text)
        except RagAssetsError as error:
            self._pause_store(place, error)
            return False
        return True

    def _pause_store(self, place: StoreName, error: RagAssetsError) -> None:
        self._paused_until[place] = time.monotonic() + _PAUSE_SECONDS
        _LOGGER.warning(
            "the marks of the catalog cannot be stored in the %s now: %s", place, error.message
        )


def has_missing_changes(notes: NoteStore, catalog: Catalog, ref: TenantRef) -> bool:
    """Return whether a store's mark proves that the catalog lost changes of a tenant.

    This one store is enough evidence for a deletion from the same store.
    """
    # Read the copies first: the catalog's mark can only grow between the two reads.
    kept_mark = KeptMark.parse(notes.read(_build_mark_name(ref)))
    journal = parse_changes(notes.read(_JOURNAL) or "")
    own = catalog.marks.read(ref)
    if (
        kept_mark is not None
        and own is not None
        and (kept_mark.set_back or kept_mark.is_ahead_of(own.mark))
    ):
        return True
    return bool(catalog.security.find_missing(journal))


def _build_mark_name(ref: TenantRef) -> str:
    return f"{tenant_folder(ref.id, ref.incarnation)}/{_MARK}"


def may_delete(ctx: TenantContext) -> bool:
    """Return whether the tenant's data may be deleted."""
    return find_deletion_refusal(ctx) is None


def find_deletion_refusal(ctx: TenantContext) -> CatalogSetBack | None:
    """Return why the tenant's data must not be deleted; None if it may be deleted."""
    return ctx.keeper.find_deletion_refusal(ctx.ref)


def require_current(ctx: TenantContext) -> None:
    """Require that the catalog lacks no change of the tenant."""
    if (error := find_deletion_refusal(ctx)) is not None:
        raise error


def build_held_warning(
    tenant_id: str, syncs: Sequence[Sync], refused: CatalogSetBack | None
) -> str:
    """Return the warning about documents that disappeared from their source and are kept."""
    count = format_count(sum(sync.held_deletions for sync in syncs), "document")
    if refused is None:
        reasons = "; ".join(f"source {sync.source}: {sync.held_reason}" for sync in syncs)
        return (
            f"{count} of {tenant_id} disappeared, and the deletion is held back: {reasons}. To"
            f" delete them, run: rag-assets sync {tenant_id} --allow-deletes"
        )
    return (
        f"{count} of {tenant_id} disappeared, and the deletion is held back: {refused.message}."
        f" {refused.hint}"
    )


def accept_catalog(ctx: TenantContext) -> bool:
    """Accept that the catalog lacks changes of the tenant; return whether it lacked any.

    The next sync compares every source with the catalog again.

    Raises:
        RestorePending: the catalog also lacks security changes, which must be resolved first.
        ServiceUnavailable: a store does not answer.
    """
    if (pending := ctx.keeper.find_pending_restore()) is not None:
        raise pending
    if not ctx.keeper.accept(ctx.ref):
        return False
    ctx.catalog.events.write(ctx.ref, "catalog_accepted", [{}])
    ctx.catalog.syncs.reset(ctx.ref)
    return True
