"""Records with one text: their body, the rules of their identifiers, and their source."""

from __future__ import annotations

import re
from typing import Annotated, Final
from urllib.parse import unquote

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.common.errors import NoRecordsSource
from rag_assets.common.invalid_values import invalid
from rag_assets.ingest.parsing import media_types
from rag_assets.ingest.parsing.registry import PARSERS
from rag_assets.ingest.sources.kinds import SourceConfig
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.ingest.sources.record_bodies import convert_to_utc, is_safe_url
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.records.model import PushedRecord
from rag_assets.tenants.kinds import choose_source
from rag_assets.tenants.model import Tenant

TEXT_TYPES = sorted(set(PARSERS) - set(media_types.BINARY))
"""Media types that a record's text may have."""
SOURCE_TYPE_PATTERN: Final = "[A-Za-z0-9][A-Za-z0-9_-]*"
MAX_TYPE_LENGTH: Final = 63
"""Limit of a record's type, in characters."""
# Invalid UTF-8 in an address arrives as U+FFFD.
SOURCE_ID_CHARACTER: Final = r"[^\x00-\x1f\x7f\uFFFD]"
MAX_ID_LENGTH: Final = 512
"""Limit of a record's id, in characters."""
SOURCE_TYPE = re.compile(rf"(?=.{{1,{MAX_TYPE_LENGTH}}}\Z){SOURCE_TYPE_PATTERN}", re.DOTALL)
SOURCE_ID = re.compile(rf"(?:(?![\ud800-\udfff]){SOURCE_ID_CHARACTER}){{1,{MAX_ID_LENGTH}}}")
"""The pattern of ids in a JSON body, where lone surrogates must be excluded as well."""

_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
_MAX_NUMBER = 2**53  # the range in which all JSON parsers represent integers exactly


def _require_supported(media_type: str) -> str:
    if media_type not in TEXT_TYPES:
        raise ValueError(f"it must be one of: {', '.join(TEXT_TYPES)}")
    return media_type


_Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
_Line = Annotated[str, StringConstraints(pattern=_PRINTABLE, min_length=1, max_length=1_000)]
_Address = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]+$", max_length=2_000)]
_Scope = Annotated[str, StringConstraints(pattern=_PRINTABLE, min_length=1, max_length=256)]
_Tag = Annotated[str, StringConstraints(pattern=_PRINTABLE, min_length=1, max_length=200)]
_Key = Annotated[str, StringConstraints(pattern="^[A-Za-z][A-Za-z0-9_-]*$", max_length=64)]
_Value = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=2_000)]
_Whole = Annotated[int, Field(strict=True, ge=-_MAX_NUMBER, le=_MAX_NUMBER)]
_Real = Annotated[float, Field(strict=True, ge=-_MAX_NUMBER, le=_MAX_NUMBER)]
_Truth = Annotated[bool, Field(strict=True)]
UpdatedAt = Annotated[AwareDatetime, AfterValidator(convert_to_utc)]
Version = Annotated[int, Field(ge=0, le=_MAX_NUMBER)]
_Values = Annotated[list[_Value], Field(max_length=50)]


class RecordBody(BaseModel):
    """A record of an application, as one document.

    Attributes:
        text: all searchable text of the record. If no text remains, delete the record instead.
        media_type: format of the text.
        title: title of the record; None uses the title found in the text.
        uri: address where people read the record, in ASCII without spaces: http, https, mailto, or
            a path below the name of its source; by default made of source, type and id.
        scope: the access scope; by default the source's scope, or else the tenant's.
        tags: values to filter by.
        metadata: values to filter by. If `is_secret` is true, no part of the record is stored.
        updated_at: when the text was last changed; an older write is outdated.
        version: a number that rises with each change; orders writes instead of `updated_at`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: _Text
    media_type: Annotated[
        str, AfterValidator(_require_supported), Field(json_schema_extra={"enum": [*TEXT_TYPES]})
    ] = media_types.MARKDOWN
    title: _Line | None = None
    uri: _Address | None = None
    scope: _Scope | None = None
    tags: Annotated[list[_Tag], Field(max_length=50)] = []
    metadata: Annotated[
        dict[_Key, _Truth | _Whole | _Real | _Value | _Values],
        Field(max_length=50, json_schema_extra={"additionalProperties": False}),
    ] = {}
    updated_at: UpdatedAt | None = None
    version: Version | None = None

    @property
    def is_secret(self) -> bool:
        """Return whether the application marks the record as secret, so that it is not stored."""
        value = str(self.metadata.get("is_secret", False))
        return value.strip().lower() not in {"", "0", "0.0", "false", "no"}

    def build_record(self, source: str, source_type: str, source_id: str) -> PushedRecord:
        """Return the record to store.

        Raises:
            InvalidFields: the uri belongs to another source, or is not a readable address.
        """
        if self.uri is not None and not _is_allowed_uri(self.uri, source):
            raise invalid(
                "uri",
                "it must be a URL with http, https or mailto, without a user before the host, or a"
                f" path below {source}/",
            )
        source_metadata = SourceMetadata(
            title=self.title,
            uri=self.uri,
            access_scope=self.scope,
            tags=tuple(dict.fromkeys(self.tags)),
            metadata=self.metadata,
            modified_at=self.updated_at,
        )
        return PushedRecord(
            source, source_type, source_id, self.text, self.media_type, source_metadata
        )


def require_plain_identifiers(record: PushedRecord, masker: Masker) -> None:
    """Raise an error if an identifier contains a credential.

    Masking would change the identifiers: two ids could become the same, and a scope would no longer
    match its grant.

    Raises:
        InvalidFields: the record's type, id, scope or a key of its metadata contains a
            credential.
    """
    for field, texts in (
        ("source_type", [record.source_type]),
        # The id is also checked with the type before it, because a preceding name can reveal that a
        # text is a credential.
        ("source_id", [record.source_id, f"{record.source_type}: {record.source_id}"]),
        ("scope", [record.source_metadata.access_scope or ""]),
        ("metadata", [*record.source_metadata.metadata]),
    ):
        if any(masker.holds_credential(text) for text in texts if text):
            raise invalid(
                field, "it must not contain a credential: it is stored and shown unchanged"
            )


def _is_allowed_uri(uri: str, source: str) -> bool:
    if is_safe_url(uri):
        return True
    name, _, path = uri.partition("/")
    steps = re.split(r"[/\\]", unquote(path))
    return name == source and path != "" and not {".", ".."} & {*steps}


def find_records_source(tenant: Tenant, name: str | None, *, pulled: bool = False) -> SourceConfig:
    """Return the source of a tenant's records: the named source, or the only source.

    Args:
        name: name of the source in the request, if any.
        pulled: whether sources that pull records from a database are also allowed. They are used
            if `name` is such a source, or if the tenant lacks a source for pushed records.

    Raises:
        NoRecordsSource: the source does not exist, or the choice is ambiguous.
    """
    sources = {s.name: s for s in tenant.sources if tenant.source_kind(s).pushed}
    if pulled:
        others = {s.name: s for s in tenant.sources if tenant.source_kind(s).pulled}
        sources = others if name in others or not sources else sources
    return choose_source(tenant.id, sources, name, kind="records", refusal=NoRecordsSource)
