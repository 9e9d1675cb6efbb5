"""Writes of pushed records, one or many at once, and what becomes of each."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fastapi.exceptions import RequestValidationError

from rag_assets.api.record_drafts import (
    BlockChange,
    Draft,
    Drafting,
    Put,
    Removal,
    pages_of,
    require_size,
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
from rag_assets.storage.catalog.record_writes import RecordPut, RecordsWritten
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.model import Tenant
from rag_assets.workspace.bodies import with_block, without_block

if TYPE_CHECKING:
    from rag_assets.api.backend import Backend

URGENT, BULK = 0, 1
"""Lanes: of what a person waits for, and of many at once."""

Outcome: TypeAlias = Written | RequestValidationError | UnknownDocument


@dataclass
class _Plan:
    """The state that drafts make, one after the other.

    Attributes:
        lane: of what is stored.
        puts: records as they will be, by document.
        removed: documents whose records go.
        refused: why drafts cannot be followed, by number.
    """

    drafts: Sequence[Draft | RequestValidationError]
    lane: int
    puts: dict[str, RecordPut] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    refused: dict[int, RequestValidationError | UnknownDocument] = field(default_factory=dict)

    def __call__(
        self, present: Mapping[str, PushedRecord]
    ) -> tuple[Sequence[RecordPut], Collection[str]]:
        """What is stored and removed, of records that are as they are."""
        for number, draft in enumerate(self.drafts):
            if isinstance(draft, RequestValidationError):
                self.refused[number] = draft
                continue
            try:
                self._follow(draft, present)
            except (RequestValidationError, UnknownDocument) as error:
                self.refused[number] = error
        return [*self.puts.values()], self.removed

    def _follow(self, draft: Draft, present: Mapping[str, PushedRecord]) -> None:
        id_ = draft.document_id
        if isinstance(draft, Removal):
            self.puts.pop(id_, None)
            self.removed.add(id_)
            return
        put = (
            RecordPut(draft.record, draft.scope, self.lane)
            if isinstance(draft, Put)
            else self._with_block(draft, present)
        )
        self.puts[id_] = put
        self.removed.discard(id_)

    def _with_block(self, draft: BlockChange, present: Mapping[str, PushedRecord]) -> RecordPut:
        id_ = draft.document_id
        page = self.puts[id_].record if id_ in self.puts else present.get(id_)
        if page is None or id_ in self.removed:
            raise UnknownDocument("there is no such page", hint="push the page before its blocks")
        kept = json.loads(page.text)
        if draft.body is None:
            changed = without_block(kept, draft.block_id)
        else:
            changed = with_block(kept, draft.body)
        record = with_text(page, changed, draft.body)
        require_size(record)
        return RecordPut(record, None, self.lane)


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
    written = catalog.records.write(ref, plan, by=by, read=frozenset(pages_of(valid)))
    if written.blobs:
        drop_blobs(catalog, blobs, ref, written.blobs)
    return [
        plan.refused[number]
        if number in plan.refused or isinstance(draft, RequestValidationError)
        else _written(draft, written)
        for number, draft in enumerate(drafts)
    ]


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
