"""Writes of pushed records, singly or many at once, and the outcome of each write."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from rag_assets.common.errors import UnknownDocument, VersionChanged
from rag_assets.common.hashing import sha256_hex
from rag_assets.common.invalid_values import InvalidFields
from rag_assets.ingest.sources.record_bodies import PageBlocks
from rag_assets.pipeline.uploads import drop_blobs
from rag_assets.records.drafts import (
    ANY_VERSION,
    BlockChange,
    Draft,
    Removal,
    list_changed_pages,
    replace_page_text,
    require_bytes,
)
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.records.model import (
    UNORDERED,
    CurrentState,
    PushedRecord,
    RecordChanges,
    RecordPut,
    WriteClock,
)
from rag_assets.storage.catalog.records.table import RecordsWritten

URGENT, BULK = 0, 1
"""Lanes of the queue: URGENT for single writes, which people wait for; BULK for many at once."""

Refusal: TypeAlias = InvalidFields | UnknownDocument | VersionChanged
WriteOutcome: TypeAlias = Literal[
    "queued", "removed", "unchanged", "secret", "excluded", "outdated"
]


@dataclass(frozen=True, slots=True)
class RecordWrite:
    """The outcome of a write that was not refused (see api.responses.Written), and its ETag."""

    document_id: str
    outcome: WriteOutcome
    etag: str | None = None


Outcome: TypeAlias = RecordWrite | Refusal


class _ChangedPage:
    """A page whose blocks are being changed, one after the other."""

    def __init__(self, page: PushedRecord, secret_blocks: Collection[str] = ()) -> None:
        self._page, self._blocks = page, PageBlocks(page.text)
        self._secret = {*secret_blocks}
        self._changed_at: datetime | None = None

    def apply(self, draft: BlockChange) -> None:
        """Replace, add or remove a block, unless the page would be too large."""
        if draft.body is None:
            self._blocks.remove(draft.block_id)
            return
        require_bytes(self._blocks.compute_changed_size(draft.body), self._page.source_type)
        self._blocks.put(draft.body)
        if draft.body.block.is_secret:
            self._secret.add(draft.block_id)
        if (at := draft.body.updated_at) is not None:
            self._changed_at = max(at, self._changed_at or at)

    @property
    def page_uuid(self) -> str | None:
        """Return the uuid of the page."""
        return self._page.page_uuid

    def build_put(self, lane: int) -> RecordPut:
        """Return the changed page to store."""
        record = replace_page_text(self._page, self._blocks.text, self._changed_at)
        return RecordPut(record, None, lane, frozenset(self._secret))


@dataclass
class _Plan:
    """The state that results from drafts, applied one after the other.

    Attributes:
        deleted_pages: deleted pages; their records are deleted too, unless they are pushed again
            afterwards.
        pages_deleted_at: the times of these deletions; None if no time was given.
        emptied: the deleted pages and all pages below; their stored records are ignored.
        outdated: positions of the drafts that are older than the records that they would replace.
    """

    drafts: Sequence[Draft | InvalidFields]
    lane: int
    puts: dict[str, RecordPut] = field(default_factory=dict)
    pages: dict[str, _ChangedPage] = field(default_factory=dict)
    removed_documents: set[str] = field(default_factory=set)
    deleted_pages: set[str] = field(default_factory=set)
    pages_deleted_at: list[datetime | None] = field(default_factory=list)
    emptied: set[str] = field(default_factory=set)
    clocks: dict[str, dict[str, WriteClock]] = field(default_factory=dict)
    outdated: set[int] = field(default_factory=set)
    refused: dict[int, Refusal] = field(default_factory=dict)

    def __call__(self, present: CurrentState) -> RecordChanges:
        """Return the records to store and to remove, as changes to the stored records."""
        for number, draft in enumerate(self.drafts):
            if isinstance(draft, InvalidFields):
                self.refused[number] = draft
                continue
            try:
                self._require_match(draft, present)
                if self._is_outdated(draft, present):
                    self.outdated.add(number)
                else:
                    self._apply(draft, present)
                    self._advance_clock(draft, present)
            except (InvalidFields, UnknownDocument, VersionChanged) as error:
                self.refused[number] = error
        for id_, page in self.pages.items():
            self.puts[id_] = page.build_put(self.lane)
        self.pages.clear()
        times = [at for at in self.pages_deleted_at if at is not None]
        is_timed = len(times) == len(self.pages_deleted_at)
        return RecordChanges(
            [*self.puts.values()],
            self.removed_documents,
            self.deleted_pages,
            min(times) if times and is_timed else None,
            self.clocks,
        )

    def get_etag(self, document_id: str, stored: Mapping[str, str]) -> str | None:
        """Return the ETag of a record after the drafts so far; None if the record is missing."""
        if document_id in self.pages:
            return self.pages[document_id].build_put(self.lane).record.key
        if document_id in self.puts:
            return self.puts[document_id].record.key
        return None if document_id in self.removed_documents else stored.get(document_id)

    def _require_match(self, draft: Draft, present: CurrentState) -> None:
        """Raise VersionChanged if a draft may not replace the stored version."""
        if draft.etags is None:
            return
        etag = self.get_etag(draft.document_id, present.etags)
        if etag is None or not {etag, ANY_VERSION} & draft.etags:
            raise VersionChanged(
                "the current version of the record is not the version in If-Match",
                hint="read the record and its ETag again, then decide whether to write it",
            )

    def _is_outdated(self, draft: Draft, present: CurrentState) -> bool:
        """Return whether a draft is older than a stored write of the same record.

        The times of a page and of its blocks are compared with each other, too.
        """
        if draft.clock == UNORDERED:
            return False
        clocks, own = self._find_clocks(draft.document_id, present), _get_part_key(draft)
        if draft.clock.is_before(clocks.get(own, UNORDERED)):
            return True
        others = clocks.values() if own == "" else [clocks.get("", UNORDERED)]
        return any(draft.clock.is_before(WriteClock(clock.updated_at)) for clock in others)

    def _advance_clock(self, draft: Draft, present: CurrentState) -> None:
        if draft.clock != UNORDERED:
            part = _get_part_key(draft)
            latest = self._find_clocks(draft.document_id, present).get(part, UNORDERED)
            self.clocks.setdefault(draft.document_id, {})[part] = latest.merge(draft.clock)

    def _find_clocks(self, document_id: str, present: CurrentState) -> Mapping[str, WriteClock]:
        advanced = self.clocks.get(document_id, {})
        return ChainMap(advanced, present.clocks.get(document_id, {}))

    def _apply(self, draft: Draft, present: CurrentState) -> None:
        id_ = draft.document_id
        if isinstance(draft, BlockChange):
            self._get_page(id_, present.records).apply(draft)
            return
        self.pages.pop(id_, None)
        if isinstance(draft, Removal):
            self.puts.pop(id_, None)
            self.removed_documents.add(id_)
            if draft.page_uuid is not None and draft.page_uuid not in present.standing:
                self.pages_deleted_at.append(draft.clock.updated_at)
                self._delete_page(draft.page_uuid, present.below.get(draft.page_uuid, ()))
        else:
            secret = draft.secret_blocks
            self.puts[id_] = RecordPut(draft.record, draft.scope, self.lane, secret)
            self.removed_documents.discard(id_)

    def _delete_page(self, uuid: str, below: Collection[str]) -> None:
        """Record the deletion of a page and of the pages below it, with their records."""
        deleted = {uuid, *below}
        attached = {id_ for id_, put in self.puts.items() if put.record.page_uuid in deleted}
        attached |= {id_ for id_, page in self.pages.items() if page.page_uuid in deleted}
        for id_ in attached:
            self.puts.pop(id_, None)
            self.pages.pop(id_, None)
        self.removed_documents |= attached
        self.emptied |= deleted
        self.deleted_pages.add(uuid)

    def _get_page(self, id_: str, present: Mapping[str, PushedRecord]) -> _ChangedPage:
        """Return a page to change; it is parsed only once."""
        if id_ in self.pages:
            return self.pages[id_]
        put = self.puts.get(id_)
        page = present.get(id_) if put is None else put.record
        is_deleted = put is None and page is not None and page.page_uuid in self.emptied
        if page is None or is_deleted or id_ in self.removed_documents:
            raise UnknownDocument("there is no such page", hint="push the page before its blocks")
        secret = frozenset[str]() if put is None else put.secret_blocks
        return self.pages.setdefault(id_, _ChangedPage(page, secret))


def write_drafts(
    catalog: Catalog,
    blobs: BlobStore,
    ref: TenantRef,
    drafts: Sequence[Draft | InvalidFields],
    *,
    by: str,
    lane: int,
) -> list[Outcome]:
    """Store and remove records in one transaction; return the outcome of each draft.

    A draft that fails does not stop the others.

    Args:
        drafts: the drafts; for a draft that was refused earlier, the error.

    Raises:
        TenantGone, TenantBusy: see RecordTable.write.
    """
    plan = _Plan(drafts, lane)
    valid = [draft for draft in drafts if not isinstance(draft, InvalidFields)]
    written = catalog.records.write(
        ref,
        plan,
        by=by,
        read=frozenset(list_changed_pages(valid)),
        above=_map_deleted_pages(valid),
        ordered={draft.document_id for draft in valid if draft.clock != UNORDERED},
        conditional={draft.document_id for draft in valid if draft.etags is not None},
    )
    if written.blobs:
        drop_blobs(catalog, blobs, ref, written.blobs)
    return [
        plan.refused[number]
        if number in plan.refused or isinstance(draft, InvalidFields)
        else RecordWrite(draft.document_id, "outdated")
        if number in plan.outdated
        else _build_result(draft, written, plan.get_etag(draft.document_id, {}))
        for number, draft in enumerate(drafts)
    ]


def _map_deleted_pages(drafts: Sequence[Draft]) -> dict[str, str]:
    """Return the document ids of the pages that drafts delete, by the pages' uuids.

    The result is empty if all drafts are deletions, because then no record is stored.
    """
    removals = [draft for draft in drafts if isinstance(draft, Removal)]
    if len(removals) == len(drafts):
        return {}
    return {
        removal.page_uuid: removal.document_id
        for removal in removals
        if removal.page_uuid is not None
    }


def _get_part_key(draft: Draft) -> str:
    """Return the key of the part that a draft changes: a hash for a block, "" for a record."""
    return sha256_hex(draft.block_id) if isinstance(draft, BlockChange) else ""


def _build_result(draft: Draft, written: RecordsWritten, etag: str | None) -> RecordWrite:
    id_ = draft.document_id
    etag = None if etag is None else f'"{etag}"'
    if isinstance(draft, Removal):
        if draft.is_secret:
            return RecordWrite(id_, "secret")
        return RecordWrite(id_, "removed" if id_ in written.removed else "unchanged")
    if id_ in written.expired:
        return RecordWrite(id_, "excluded", etag=etag)
    return RecordWrite(id_, "queued" if id_ in written.changed else "unchanged", etag=etag)
