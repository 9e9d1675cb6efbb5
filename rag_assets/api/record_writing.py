"""Writes of pushed records, one or many at once, and what becomes of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from fastapi.exceptions import RequestValidationError

from rag_assets.api.record_drafts import (
    BlockChange,
    Draft,
    Drafting,
    Removal,
    pages_of,
    require_bytes,
    with_text,
)
from rag_assets.api.responses import Written
from rag_assets.api.write_model import records_source
from rag_assets.common.errors import UnknownDocument
from rag_assets.pipeline.blobs import drop_blobs
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.pushed_records import PushedRecord
from rag_assets.storage.catalog.record_plans import Present, RecordChanges, RecordPut
from rag_assets.storage.catalog.record_writes import RecordsWritten
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.model import Tenant
from rag_assets.workspace.page_blocks import PageBlocks

if TYPE_CHECKING:
    from rag_assets.api.backend import Backend

URGENT, BULK = 0, 1
"""Lanes: of what a person waits for, and of many at once."""

Outcome: TypeAlias = Written | RequestValidationError | UnknownDocument


class _ChangedPage:
    """A page of which blocks are changed, one after the other.

    Args:
        page: as it is.
        secret_blocks: ids of blocks that were left out of it.
    """

    def __init__(self, page: PushedRecord, secret_blocks: Collection[str] = ()) -> None:
        self._page, self._blocks = page, PageBlocks(page.text)
        self._secret = {*secret_blocks}
        self._changed_at: datetime | None = None

    def follow(self, draft: BlockChange) -> None:
        """Change a block.

        Raises:
            RequestValidationError: the page would be too large; it is as it was.
        """
        if draft.body is None:
            self._blocks.remove(draft.block_id)
            return
        require_bytes(self._blocks.size_with(draft.body), self._page.source_type)
        self._blocks.put(draft.body)
        if draft.body.block.is_secret:
            self._secret.add(draft.block_id)
        if (at := draft.body.updated_at) is not None:
            self._changed_at = max(at, self._changed_at or at)

    @property
    def page_uuid(self) -> str | None:
        """The page."""
        return self._page.page_uuid

    def put(self, lane: int) -> RecordPut:
        """The page with its changes, to be stored."""
        record = with_text(self._page, self._blocks.text, self._changed_at)
        return RecordPut(record, None, lane, frozenset(self._secret))


@dataclass
class _Plan:
    """The state that drafts make, one after the other.

    Attributes:
        lane: of what is stored.
        puts: records as they will be, by document, but for blocks that are changed alone.
        pages: of which blocks are changed, by document.
        removed: documents whose records go.
        gone: pages that are deleted, with what hangs on them and is not pushed after that.
        emptied: these pages and those below, of which nothing counts that was stored before.
        refused: why drafts cannot be followed, by number.
    """

    drafts: Sequence[Draft | RequestValidationError]
    lane: int
    puts: dict[str, RecordPut] = field(default_factory=dict)
    pages: dict[str, _ChangedPage] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)
    refused: dict[int, RequestValidationError | UnknownDocument] = field(default_factory=dict)

    def __call__(self, present: Present) -> RecordChanges:
        """What is stored and removed, of records that are as they are."""
        for number, draft in enumerate(self.drafts):
            if isinstance(draft, RequestValidationError):
                self.refused[number] = draft
                continue
            try:
                self._follow(draft, present)
            except (RequestValidationError, UnknownDocument) as error:
                self.refused[number] = error
        for id_, page in self.pages.items():
            self.puts[id_] = page.put(self.lane)
        return RecordChanges([*self.puts.values()], self.removed, self.gone)

    def _follow(self, draft: Draft, present: Present) -> None:
        id_ = draft.document_id
        if isinstance(draft, BlockChange):
            self._page(id_, present.records).follow(draft)
            return
        self.pages.pop(id_, None)
        if isinstance(draft, Removal):
            self.puts.pop(id_, None)
            self.removed.add(id_)
            if draft.page_uuid is not None and draft.page_uuid not in present.standing:
                self._delete_page(draft.page_uuid, present.below.get(draft.page_uuid, ()))
        else:
            secret = draft.secret_blocks
            self.puts[id_] = RecordPut(draft.record, draft.scope, self.lane, secret)
            self.removed.discard(id_)

    def _delete_page(self, uuid: str, below: Collection[str]) -> None:
        """Take back what was to be stored on a page, and on those below it."""
        gone = {uuid, *below}
        hanging = {id_ for id_, put in self.puts.items() if put.record.page_uuid in gone}
        hanging |= {id_ for id_, page in self.pages.items() if page.page_uuid in gone}
        for id_ in hanging:
            self.puts.pop(id_, None)
            self.pages.pop(id_, None)
        self.removed |= hanging
        self.emptied |= gone
        self.gone.add(uuid)

    def _page(self, id_: str, present: Mapping[str, PushedRecord]) -> _ChangedPage:
        """A page to change, which is read once."""
        if id_ in self.pages:
            return self.pages[id_]
        put = self.puts.get(id_)
        page = present.get(id_) if put is None else put.record
        is_gone = put is None and page is not None and page.page_uuid in self.emptied
        if page is None or is_gone or id_ in self.removed:
            raise UnknownDocument("there is no such page", hint="push the page before its blocks")
        secret = frozenset[str]() if put is None else put.secret_blocks
        return self.pages.setdefault(id_, _ChangedPage(page, secret))


def write_drafts(
    catalog: Catalog,
    blobs: BlobStore,
    ref: TenantRef,
    drafts: Sequence[Draft | RequestValidationError],
    *,
    by: str,
    lane: int,
) -> list[Outcome]:
    """Store and remove records in one transaction; a draft that cannot be followed stops no other.

    Args:
        catalog, blobs: of the installation.
        ref: the tenant.
        drafts: in their order, those that were refused among them.
        by: the caller's name, for events.
        lane: URGENT or BULK.

    Returns:
        the outcome of each.

    Raises:
        TenantGone, TenantBusy: see RecordTable.write.
    """
    plan = _Plan(drafts, lane)
    valid = [draft for draft in drafts if not isinstance(draft, RequestValidationError)]
    written = catalog.records.write(
        ref, plan, by=by, read=frozenset(pages_of(valid)), above=_deleted_pages(valid)
    )
    if written.blobs:
        drop_blobs(catalog, blobs, ref, written.blobs)
    return [
        plan.refused[number]
        if number in plan.refused or isinstance(draft, RequestValidationError)
        else _written(draft, written)
        for number, draft in enumerate(drafts)
    ]


def _deleted_pages(drafts: Sequence[Draft]) -> dict[str, str]:
    """Pages that are deleted among drafts of which some are stored, each with its document.

    None where none are stored.
    """
    removed = [draft for draft in drafts if isinstance(draft, Removal)]
    if len(removed) == len(drafts):
        return {}
    return {one.page_uuid: one.document_id for one in removed if one.page_uuid is not None}


def drafting_of(
    backend: Backend, tenant_id: str, source: str | None
) -> tuple[Drafting, TenantRecord]:
    """What makes drafts of what is sent to a tenant, and the tenant.

    Raises:
        NoRecordsSource: see records_source.
    """
    known = backend.catalog.tenants.get(tenant_id)
    tenant = Tenant.from_config(known.config)
    masker = backend.retriever.masker
    return Drafting(tenant, records_source(tenant, source), masker), known


def _written(draft: Draft, written: RecordsWritten) -> Written:
    id_ = draft.document_id
    if isinstance(draft, Removal):
        if draft.is_secret:
            return Written(id_, "secret")
        return Written(id_, "removed" if id_ in written.removed else "unchanged")
    if id_ in written.expired:
        return Written(id_, "excluded")
    return Written(id_, "queued" if id_ in written.changed else "unchanged")
