"""Conversion of pushed bodies to drafts of stored records, with checks of ids and sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict

from rag_assets.common.invalid_values import invalid, validate_values
from rag_assets.ingest.parsing.media_types import TYPED_RECORD
from rag_assets.ingest.sources.kinds import SourceConfig
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.ingest.sources.record_bodies import (
    BODIES,
    BlockBody,
    CommentBody,
    DbRowBody,
    FileBody,
    PageBody,
    TypedBody,
    serialize_canonical,
)
from rag_assets.ingest.sources.records import (
    MAX_PAGE_BYTES,
    MAX_RECORD_BYTES,
    MAX_UUID_LENGTH,
    PAGE_UUID,
    UUID_RULE,
    compute_record_document_id,
)
from rag_assets.privacy.described import find_described_spans
from rag_assets.privacy.masker import Masker
from rag_assets.records.text_records import (
    RecordBody,
    UpdatedAt,
    Version,
    require_plain_identifiers,
)
from rag_assets.storage.catalog.records.model import UNORDERED, PushedRecord, WriteClock
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile

ANY_VERSION: Final = "*"
"""Stands for every ETag in the conditions of a write."""


@dataclass(frozen=True, slots=True)
class Put:
    """A record to store.

    Attributes:
        scope: access scope of the record; None means the scope of its page.
        secret_blocks: ids of a page's blocks that are not stored.
        etags: ETags of the versions that the record may replace; None replaces any version.
    """

    record: PushedRecord
    scope: str | None
    secret_blocks: frozenset[str] = frozenset()
    clock: WriteClock = UNORDERED
    etags: frozenset[str] | None = None

    @property
    def document_id(self) -> str:
        """Return the id of the record's document."""
        return self.record.document_id


@dataclass(frozen=True, slots=True)
class Removal:
    """A record to remove, because it was deleted or is marked as secret."""

    document_id: str
    is_secret: bool = False
    page_uuid: str | None = None
    clock: WriteClock = UNORDERED
    etags: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class BlockChange:
    """A block of a page to change; without a body, it is removed. See Put.

    Attributes:
        document_id: document of the page.
    """

    document_id: str
    block_id: str
    body: BlockBody | None
    clock: WriteClock = UNORDERED
    etags: frozenset[str] | None = None


Draft: TypeAlias = Put | Removal | BlockChange


class DraftBuilder:
    """Converts the bodies that applications push for a tenant to drafts."""

    def __init__(self, tenant: Tenant, source: SourceConfig, masker: Masker) -> None:
        self._source = source.name
        self._scope = source.scope or tenant.access.scope
        self._typed = get_profile(tenant.profile).typed_records
        self._masker = masker

    def put(self, source_type: str, source_id: str, values: Any) -> Draft:
        """Return the draft that stores a valid body, or removes the record if it is secret."""
        if not self._typed:
            return self._build_text_draft(source_type, source_id, values)
        body = validate_values(_find_body_type(source_type), values)
        if isinstance(body, PageBody):
            _require_page_uuid("source_id", source_id)
        self._require_plain(source_type, source_id, body)
        clock = WriteClock(body.updated_at, body.version)
        if isinstance(body, BlockBody):
            if body.block.block_id != source_id:
                raise invalid("block_id", "it must be the id of the record")
            page = compute_record_document_id(self._source, PageBody.TYPE, body.page_uuid)
            return BlockChange(page, source_id, body, clock)
        if body.is_secret:
            id_ = self._compute_document_id(source_type, source_id)
            return Removal(id_, is_secret=True, clock=clock)
        record = self._build_record(source_type, source_id, body)
        secret = body.secret_blocks if isinstance(body, PageBody) else frozenset[str]()
        return Put(record, None if record.page_uuid else self._scope, secret, clock)

    def delete(
        self,
        source_type: str,
        source_id: str,
        page_uuid: Any = None,
        clock: WriteClock = UNORDERED,
    ) -> Draft:
        """Return the draft that deletes a record, or a block of a page."""
        if self._typed and _find_body_type(source_type) is BlockBody:
            if page_uuid is None:
                raise invalid("page_uuid", "it is required to delete a block")
            _require_page_uuid("page_uuid", page_uuid)
            page = compute_record_document_id(self._source, PageBody.TYPE, page_uuid)
            return BlockChange(page, source_id, None, clock)
        is_page = self._typed and source_type == PageBody.TYPE
        id_ = self._compute_document_id(source_type, source_id)
        return Removal(id_, page_uuid=source_id if is_page else None, clock=clock)

    def _compute_document_id(self, source_type: str, source_id: str) -> str:
        return compute_record_document_id(self._source, source_type, source_id)

    def _build_text_draft(self, source_type: str, source_id: str, values: Any) -> Draft:
        body = validate_values(RecordBody, values)
        record = body.build_record(self._source, source_type, source_id)
        require_plain_identifiers(record, self._masker)
        clock = WriteClock(body.updated_at, body.version)
        if body.is_secret:
            return Removal(record.document_id, is_secret=True, clock=clock)
        return Put(record, body.scope or self._scope, clock=clock)

    def _build_record(self, source_type: str, source_id: str, body: TypedBody) -> PushedRecord:
        stored_form = body.build_stored_form()
        if isinstance(body, PageBody):
            _require_distinct(body)
        record = PushedRecord(
            source=self._source,
            source_type=source_type,
            source_id=source_id,
            text=serialize_canonical(stored_form),
            media_type=TYPED_RECORD,
            source_metadata=SourceMetadata(
                # The text of a file does not contain its name.
                title=body.name if isinstance(body, FileBody) else None,
                uri=body.url,
                metadata=self._select_properties(body) if isinstance(body, DbRowBody) else {},
                modified_at=body.updated_at,
            ),
            page_uuid=body.find_page_uuid(source_id),
            resolved_at=body.resolved_at if isinstance(body, CommentBody) else None,
        )
        require_size(record)
        return record

    def _select_properties(self, row: DbRowBody) -> dict[str, list[str]]:
        """Return the properties by which a row can be filtered, without those with credentials."""
        properties = row.properties
        lines = {
            name: "\n".join(f"{name}: {value}" for value in properties[name]) for name in properties
        }
        if not self._holds_credential("\n".join(lines.values())):
            return properties
        return {
            name: properties[name]
            for name, text in lines.items()
            if not self._holds_credential(text)
        }

    def _holds_credential(self, text: str) -> bool:
        return bool(find_described_spans(text)) or self._masker.holds_credential(text)

    def _require_plain(self, source_type: str, source_id: str, body: TypedBody) -> None:
        """Reject an identifier that contains a credential, because masking would change it."""
        ids = {"source_id": [source_id, f"{source_type}: {source_id}"]} | _list_identifiers(body)
        # All identifiers are scanned together first, because they nearly always contain no
        # credential.
        together = "\n".join(text for texts in ids.values() for text in texts)
        if not self._holds_credential(together):
            return
        for field, texts in ids.items():
            if any(self._holds_credential(text) for text in texts if text):
                raise invalid(
                    field, "it must not contain a credential: it is stored and shown unchanged"
                )


def require_size(record: PushedRecord) -> None:
    """Raise InvalidFields for a record that is too large."""
    require_bytes(len(record.text.encode()), record.source_type)


def require_bytes(size: int, source_type: str) -> None:
    """Raise InvalidFields for a size in bytes that is too large for a record of this type."""
    is_page = source_type == PageBody.TYPE
    max_bytes = MAX_PAGE_BYTES if is_page else MAX_RECORD_BYTES
    if size > max_bytes:
        noun = "page" if is_page else "record"
        raise invalid(
            "blocks" if is_page else "body", f"a {noun} must not exceed {max_bytes:,} bytes"
        )


def replace_page_text(record: PushedRecord, text: str, changed_at: datetime | None) -> PushedRecord:
    """Return a page with the text that results from changes to its blocks."""
    metadata = record.source_metadata
    if changed_at is not None and metadata.modified_at is not None:
        changed_at = max(changed_at, metadata.modified_at)
    return replace(
        record,
        text=text,
        source_metadata=metadata
        if changed_at is None
        else replace(metadata, modified_at=changed_at),
    )


class _ClockFields(BaseModel):
    model_config = ConfigDict(frozen=True)

    updated_at: UpdatedAt | None = None
    version: Version | None = None


def pop_clock(values: dict[str, Any]) -> WriteClock:
    """Remove the time and the version from the fields of a deletion, and return them."""
    names = ("updated_at", "version")
    clock = validate_values(
        _ClockFields, {name: values.pop(name) for name in names if name in values}
    )
    return WriteClock(clock.updated_at, clock.version)


def _find_body_type(source_type: str) -> type[TypedBody]:
    body = BODIES.get(source_type)
    if body is None:
        raise invalid("source_type", f"it must be one of: {', '.join(BODIES)}")
    return body


def _require_page_uuid(field: str, uuid: Any) -> None:
    """Reject a page uuid that the tree of pages cannot contain: nobody could read the record."""
    is_text = isinstance(uuid, str) and len(uuid) <= MAX_UUID_LENGTH
    if not is_text or not re.fullmatch(PAGE_UUID, uuid):
        raise invalid(field, f"it must name a page: {UUID_RULE}")


def _require_distinct(page: PageBody) -> None:
    ids = [block.block_id for block in page.blocks]
    if len(set(ids)) < len(ids):
        raise invalid("block_id", "two blocks of the page have this id")


def _list_identifiers(body: TypedBody) -> dict[str, list[str]]:
    """Return the identifiers in a body, by the name of their field."""
    identifiers: dict[str, list[str]] = {}
    for field in ("page_uuid", "database_uuid", "block_id", "after"):
        if value := getattr(body, field, None):
            identifiers[field] = [value]
    identifiers.setdefault("block_id", []).extend(_list_block_ids(body))
    return identifiers


def _list_block_ids(body: TypedBody) -> Iterable[str]:
    if isinstance(body, PageBody):
        return [block.block_id for block in body.blocks]
    return [body.block.block_id] if isinstance(body, BlockBody) else ()


def list_changed_pages(drafts: Iterable[Draft]) -> Iterator[str]:
    """Yield the document ids of the pages whose blocks the drafts change."""
    return (draft.document_id for draft in drafts if isinstance(draft, BlockChange))
