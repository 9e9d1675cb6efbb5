"""Versions of documents in the index, and conditions on `document_index` and `documents`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Interval,
    Row,
    Select,
    Update,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    true,
    update,
)

from rag_assets.ingest.sources.pages import EXCLUDED
from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import TenantRef, Texts, among, texts_parameter
from rag_assets.storage.catalog.retention import embedded_values
from rag_assets.storage.catalog.tables import document_index, documents, generations
from rag_assets.storage.catalog.upload_rows import is_pushed_again

_RECENT_VERSIONS = 100
_ENVIRONMENTS = "@"
"""Separator between a configuration's key and the environments in which a document failed."""


@dataclass(frozen=True, slots=True)
class IndexedVersion:
    """A version of a document that is completely in the index.

    Attributes:
        indexed_key: hash of everything in its entries; searches ignore entries with another key.
        document_key, config_key: keys of the inputs from which it was built.
        parse_key, chunk_set_key: keys of its text and its chunks in the lake.
        token_count: the number of tokens in its chunks; None keeps the recorded number.
        content_sha256: hash of the content from which it was built.
    """

    document_id: str
    indexed_key: str
    document_key: str
    config_key: str
    parse_key: str
    chunk_set_key: str
    chunk_count: int
    dropped_count: int = 0
    title: str | None = None
    token_count: int | None = None
    content_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """The version of a document that the index should hold.

    Attributes:
        access_scope: the access scope of its entries. None while a sync is pending because the
            record was pushed again or its page was moved: the catalog may already have the new
            scope.
    """

    document_id: str
    indexed_key: str
    chunk_count: int
    access_scope: str | None


@dataclass(frozen=True, slots=True)
class ExpectedEntries:
    """The number of entries that a build should hold: in total, and of the last indexed versions.

    The last versions distinguish a complete index from one that was rolled back, because both may
    hold the same number of entries.

    Attributes:
        entries: the number of entries of all versions.
        recent_keys: the indexed_key of each of the last versions.
        recent: the number of entries of the last versions.
        is_settled: whether no entries wait to be deleted or written again.
    """

    entries: int = 0
    recent_keys: tuple[str, ...] = ()
    recent: int = 0
    is_settled: bool = True

    @classmethod
    def of(cls, row: Row[Any]) -> ExpectedEntries:
        """Return the value in a row of `expected_entries`."""
        return cls(row.entries, tuple(row.recent_keys or ()), row.recent, row.is_settled)


@dataclass(frozen=True, slots=True)
class ReadableVersion:
    """The version of a document that a caller may read.

    Attributes:
        indexed_key: the key of the version's entries.
        uri: the document's uri, from the catalog.
        access_scope: the document's access scope.
        content_sha256: hash of the document's content at its last listing.
        stale: whether a later listing or push changed the document.
    """

    indexed_key: str
    uri: str
    access_scope: str
    content_sha256: str | None
    stale: bool


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """A document with a version that a caller may read.

    Attributes:
        media_type: derived from the file's name; None if the name does not show it.
        access_scope: the scope that its readers need.
    """

    document_id: str
    uri: str
    title: str | None
    media_type: str | None
    access_scope: str

    @property
    def place(self) -> str:
        """Return its unique position in the list of documents; several records may share a uri."""
        return f"{self.uri} {self.document_id}"


def of_generation(
    tenant_id: str | BindParameter[str],
    generation: int | BindParameter[int],
    document_ids: Sequence[str] | None = None,
) -> ColumnElement[bool]:
    """Return the condition for rows of one generation: all, or only of the named documents."""
    held = document_index.c
    rows = and_(held.tenant == tenant_id, held.generation == generation)
    return rows if document_ids is None else and_(rows, among(held.document_id, document_ids))


def same_document() -> ColumnElement[bool]:
    """Return the condition that joins a row of `document_index` with its document."""
    return and_(
        documents.c.tenant == document_index.c.tenant,
        documents.c.document_id == document_index.c.document_id,
    )


def with_index(generation: int) -> FromClause:
    """Return the join of every document with its row for the generation, if it exists."""
    return documents.outerjoin(
        document_index, and_(same_document(), document_index.c.generation == generation)
    )


def returnable(
    tenant_id: str | BindParameter[str],
    generation: int | BindParameter[int],
    *columns: ColumnElement[Any],
) -> Select[Any]:
    """Return the query on versions that searches may return.

    They are complete, and their documents are neither deleted nor excluded.
    """
    return (
        select(*columns)
        .select_from(document_index)
        .join(documents, same_document())
        .where(
            of_generation(tenant_id, generation),
            document_index.c.indexed_key.is_not(None),
            documents.c.status != "DELETED",
            ~is_excluded(),
        )
    )


def expected_entries() -> Select[Any]:
    """Return the query for the rows of `ExpectedEntries.of`, one for each build of a tenant.

    Its parameter "tenants" names the tenants.
    """
    held, build = document_index.c, generations.c
    of_build = and_(held.tenant == build.tenant, held.generation == build.generation)
    totals = (
        select(
            func.coalesce(func.sum(held.chunk_count), 0).label("entries"),
            func.coalesce(func.bool_and(~or_(held.dirty, has_left())), True).label("is_settled"),
        )
        .join(documents, same_document())
        .where(of_build)
        .lateral("totals")
    )
    last = (
        select(held.indexed_key, held.chunk_count)
        .where(of_build, held.indexed_key.is_not(None))
        .order_by(held.indexed_at.desc(), held.document_id)
        .limit(_RECENT_VERSIONS)
        .correlate(generations)
        .subquery()
    )
    recent = select(
        func.array_agg(last.c.indexed_key).label("recent_keys"),
        func.coalesce(func.sum(last.c.chunk_count), 0).label("recent"),
    ).lateral("recent")
    return (
        select(build.tenant, build.generation, *totals.c, *recent.c)
        .select_from(generations)
        .join(totals, true())
        .join(recent, true())
        .where(among(build.tenant, texts_parameter("tenants")), build.state != "REMOVING")
    )


def readable_versions(
    tenant_id: str | BindParameter[str],
    generation: int | BindParameter[int],
    document_ids: Texts,
    principals: Texts,
) -> Select[Any]:
    """Return the query on versions that may be returned and read, for `readable_by_document`.

    It leaves out deleted documents, and documents that none of the principals may read.
    """
    held = document_index.c
    return returnable(
        tenant_id,
        generation,
        *(held.document_id, held.indexed_key, documents.c.uri, documents.c.access_scope),
        documents.c.content_sha256,
        is_behind_source().label("stale"),
    ).where(among(held.document_id, document_ids), is_readable(documents, principals))


def readable_by_document(rows: Iterable[Row[Any]]) -> dict[str, ReadableVersion]:
    """Return the version of each document in the rows of `readable_versions`."""
    return {
        row.document_id: ReadableVersion(
            row.indexed_key, row.uri, row.access_scope, row.content_sha256, row.stale
        )
        for row in rows
    }


def valid_versions(
    tenant_id: str, generation: int, document_ids: Sequence[str], column: ColumnElement[Any]
) -> Select[Any]:
    """Return the query on a column of each named document's valid version, by document id.

    A version is valid if it is complete and was not invalidated afterwards.
    """
    return select(document_index.c.document_id, column).where(
        of_generation(tenant_id, generation, document_ids),
        document_index.c.indexed_key.is_not(None),
        document_index.c.document_key.is_not(None),
    )


def is_excluded() -> ColumnElement[bool]:
    """Return the condition that a document's page excludes it from search.

    An excluded document is not indexed, and is removed from builds. Its texts and vectors stay in
    the lake, so that it can return.
    """
    return documents.c.access_scope == EXCLUDED


def has_left() -> ColumnElement[bool]:
    """Return the condition that builds must not hold entries of the document."""
    return or_(documents.c.status == "DELETED", is_excluded())


def is_behind(config_key: str | ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that the indexed version is missing or was built from other inputs."""
    held = document_index.c
    return or_(
        held.document_key.is_distinct_from(documents.c.document_key),
        held.config_key.is_distinct_from(config_key),
    )


def is_behind_source() -> ColumnElement[bool]:
    """Return the condition that the document changed after its version was built."""
    indexed, listed = (
        func.split_part(table.c.document_key, ".", 1) for table in (document_index, documents)
    )
    return or_(indexed.is_distinct_from(listed), is_pushed_again())


def is_pending(config_key: str | ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that the document can be processed now.

    It is behind or not yet marked ready. A quarantined or deferred document counts only after its
    retry time.
    """
    waits = and_(
        documents.c.status.in_(("FAILED", "PROCESSING")),
        documents.c.failed_document_key == documents.c.document_key,
        _failed_key(documents.c).in_((config_key, "*")),
        or_(documents.c.retry_at.is_(None), documents.c.retry_at > func.now()),
    )
    # A change that was reverted leaves the right version in the index and the status PROCESSING.
    return and_(
        documents.c.status != "DELETED",
        ~is_excluded(),
        or_(is_behind(config_key), documents.c.status == "PROCESSING"),
        ~func.coalesce(waits, False),
    )


def is_pending_beside(config_key: str | ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition of is_pending, for a build that answers but is not the configured build.

    The document's status is ignored, because it describes the build that the configuration asks
    for.
    """
    held, listed = document_index.c, documents.c
    waits = and_(
        held.failed_document_key == listed.document_key,
        _failed_key(held) == config_key,
        or_(held.retry_at.is_(None), held.retry_at > func.now()),
    )
    unreadable = and_(
        listed.failed_document_key == listed.document_key, listed.failed_config_key == "*"
    )
    return and_(
        listed.status != "DELETED",
        ~is_excluded(),
        is_behind(config_key),
        ~func.coalesce(waits, False),
        ~func.coalesce(unreadable, False),
    )


def failed_key(
    table: FromClause, config_key: str, environment: ColumnElement[str], document_key: Any
) -> ColumnElement[str]:
    """Return the value of `failed_config_key` for a failure.

    For a failure caused by a setting, it also lists the environments in which the document failed.
    Each environment is tried once.

    Args:
        table: `documents` or `document_index`.
        config_key: key of the tenant's configuration.
        environment: key of the environment; empty for other failures.
        document_key: key of the document that fails.
    """
    former = table.c.failed_config_key
    is_again = and_(
        table.c.failed_document_key == document_key,
        former.startswith(config_key + _ENVIRONMENTS, autoescape=True),
    )
    return case(
        (environment == "", config_key),
        (and_(is_again, func.strpos(former, environment) > 0), former),
        (is_again, former + "," + environment),
        else_=literal(config_key + _ENVIRONMENTS) + environment,
    )


def raw_failed_key(config_key: str, environment: str) -> str:
    """Return the value of `failed_config_key` for the first failure."""
    return f"{config_key}{_ENVIRONMENTS}{environment}" if environment else config_key


def environment_of(failed: ColumnElement[Any]) -> ColumnElement[str]:
    """Return the environment of a first failure; empty if a setting did not cause it."""
    return func.split_part(failed, _ENVIRONMENTS, 2)


def fails_elsewhere(table: FromClause, environment: str) -> ColumnElement[bool]:
    """Return the condition that a setting made a document fail, but not in this environment."""
    failed = table.c.failed_config_key
    return and_(
        failed.contains(_ENVIRONMENTS),
        ~failed.contains(environment, autoescape=True),
        or_(table.c.retry_at.is_(None), table.c.retry_at > func.now()),
    )


def _failed_key(columns: Any) -> ColumnElement[str]:
    """Return the key of the configuration in which a document failed."""
    return func.split_part(columns.failed_config_key, _ENVIRONMENTS, 1)


def withhold_statement(ref: TenantRef, document_ids: Sequence[str]) -> Update:
    """Return the statement that withholds all versions of documents and schedules deletion."""
    keys = (
        *("indexed_key", "document_key", "config_key"),
        *("content_sha256", "parse_key", "chunk_set_key"),
    )
    return (
        update(document_index)
        .where(
            document_index.c.tenant == ref.id,
            among(document_index.c.document_id, document_ids),
        )
        .values(**dict.fromkeys(keys), chunk_count=0, dirty=True)
    )


def mark_ready_statement(ref: TenantRef, ahead: timedelta, *, beside: bool = False) -> Update:
    """Return the statement that marks documents READY; execute it with `ready_parameters` rows.

    Args:
        ahead: how far the clock used for ages is ahead of Postgres's clock.
        beside: whether the configuration asks for another build. Documents that wait in the
            configuration's build then keep waiting.
    """
    waits = documents.c.failed_document_key.is_not_distinct_from(documents.c.document_key)
    # A document that changed in the meantime stays PROCESSING; a deleted one stays DELETED.
    return (
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            documents.c.document_id == bindparam("version_of"),
            documents.c.document_key == bindparam("version_key"),
            documents.c.status != "DELETED",
            *((~waits,) if beside else ()),
        )
        .values(
            status="READY",
            title=bindparam("version_title"),
            error_message=None,
            error_kind=None,
            failed_document_key=None,
            failed_config_key=None,
            attempts=0,
            retry_at=None,
            chunk_count=bindparam("version_chunks"),
            dropped_count=bindparam("version_dropped"),
            **embedded_values(literal(ahead, Interval)),
            updated_at=func.now(),
        )
    )


def ready_parameters(version: IndexedVersion) -> dict[str, Any]:
    """Return a version as parameters of `mark_ready_statement`."""
    return {
        "version_of": version.document_id,
        "version_key": version.document_key,
        "version_title": version.title,
        "version_chunks": version.chunk_count,
        "version_dropped": version.dropped_count,
    }
