"""Access: which documents of a tenant a caller may query, list and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rag_assets.common.errors import RoleRefused, UnknownDocument
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.documents.readable import ReadableDocument
from rag_assets.storage.index.model import NONE_MOVED, MovedPages, Owner, StoredEntry
from rag_assets.storage.index.store import VectorStore
from rag_assets.tenants.profiles import get_profile

MANY_SCOPES = 1_000
"""Maximum number of scopes by which the first search of the index filters; see VerifyStep."""
_WITHHELD = "\n[...]\n"
_MAX_BLANKS = 16
"""Maximum blanks between two adjacent chunks. Chunks start and end with words."""


class ScopedDocument(Protocol):
    """A document, or an index entry of one, with its current access scope and uri."""

    @property
    def access_scope(self) -> str:
        """Return the scope that a caller needs to read the document."""

    @property
    def uri(self) -> str:
        """Return the document's uri."""


class AccessPolicy(Protocol):
    """Decides which documents a caller may read.

    The catalog records which scopes are granted to which principals. A policy can withhold granted
    scopes and documents. It can widen access only by adding principals to a caller.
    """

    def principals(self, caller: Caller) -> tuple[str, ...]:
        """Return the principals whose grants apply to a caller."""

    def scopes(self, caller: Caller, granted: frozenset[str]) -> frozenset[str]:
        """Return the access scopes that filter searches of the index."""

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:
        """Return whether the caller may read a document whose scope is granted to the caller."""


class FlatScopes:
    """The default access policy: the granted scopes apply unchanged."""

    def principals(self, caller: Caller) -> tuple[str, ...]:  # noqa: D102
        return caller.principals

    def scopes(self, caller: Caller, granted: frozenset[str]) -> frozenset[str]:  # noqa: D102
        return granted

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:  # noqa: D102
        # The SQL statement that read the document already checked its scope against current grants.
        return True


def split_moved_pages(scopes: Mapping[str, str], readable: frozenset[str]) -> MovedPages:
    """Split recently moved pages into pages that a caller may read, and other pages."""
    if not scopes:
        return NONE_MOVED
    return MovedPages(
        tuple(uuid for uuid, scope in scopes.items() if scope in readable),
        tuple(uuid for uuid, scope in scopes.items() if scope not in readable),
    )


def may_query(profile: str, caller: Caller) -> bool:
    """Return whether a caller may query tenants of a profile and read their documents."""
    roles = get_profile(profile).asked_by
    return not roles or caller.role is None or caller.role in roles


def require_query_role(profile: str, caller: Caller) -> None:
    """Require that a caller may query tenants of a profile."""
    if not may_query(profile, caller):
        roles = " or ".join(sorted(get_profile(profile).asked_by))
        raise RoleRefused(
            f"only the role {roles} may query this tenant",
            hint=f"use a token with the role {roles}",
        )


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's indexed text, with a gap for each withheld or altered chunk."""

    document_id: str
    uri: str
    title: str | None
    text: str


class DocumentReader:
    """Lists and reads documents of the serving generation that a policy permits.

    Its methods raise UnknownTenant for an unknown id, and RoleRefused if the caller's role may not
    query the tenant.
    """

    def __init__(
        self, catalog: Catalog, store: VectorStore, policy: AccessPolicy | None = None
    ) -> None:
        self.catalog = catalog
        self.policy = policy or FlatScopes()
        self._store = store

    def list(
        self, tenant_id: str, caller: Caller, *, limit: int, after: str | None = None
    ) -> list[ReadableDocument]:
        """Return at most `limit` documents that the caller may read, sorted by uri.

        Args:
            after: the `place` of the last document of the previous page; None for the first page.
        """
        record = self.catalog.tenants.get(tenant_id)
        require_query_role(record.profile, caller)
        serving = self.catalog.generations.serving(tenant_id)
        if record.state != "ACTIVE" or serving is None:
            return []
        permitted: list[ReadableDocument] = []
        while len(permitted) < limit:
            wanted = limit - len(permitted)
            found = self.catalog.readable.page(
                tenant_id,
                serving.number,
                self.policy.principals(caller),
                limit=wanted,
                after=after,
            )
            permitted += [document for document in found if self.policy.permits(caller, document)]
            if len(found) < wanted:
                break
            after = found[-1].place
        return permitted

    def read(self, tenant_id: str, caller: Caller, document_id: str) -> DocumentText:
        """Return the text of a document; see entries()."""
        return _build_text(document_id, self.entries(tenant_id, caller, document_id))

    def read_all(
        self, tenant_id: str, caller: Caller, document_ids: Sequence[str]
    ) -> dict[str, DocumentText]:
        """Return the texts of the requested documents that the caller may read, by id."""
        entries = self.read_entries_of(tenant_id, caller, document_ids)
        return {id_: _build_text(id_, chunks) for id_, chunks in entries.items()}

    def entries(self, tenant_id: str, caller: Caller, document_id: str) -> Sequence[StoredEntry]:
        """Return the index entries of a document in order; at least one.

        Raises:
            UnknownDocument: no document has this id, or the caller may not read it.
        """
        # No id contains a zero byte; Postgres would reject one with an error.
        document_ids = [] if "\0" in document_id else [document_id]
        entries = self.read_entries_of(tenant_id, caller, document_ids)
        if document_id not in entries:
            raise UnknownDocument(
                f"tenant {tenant_id!r} has no such document",
                hint="use an id from the list of documents",
            )
        return entries[document_id]

    def read_entries_of(
        self, tenant_id: str, caller: Caller, document_ids: Sequence[str]
    ) -> Mapping[str, Sequence[StoredEntry]]:
        """Return the entries of the requested documents that the caller may read."""
        record = self.catalog.tenants.get(tenant_id)
        require_query_role(record.profile, caller)
        serving = self.catalog.generations.serving(tenant_id)
        if record.state != "ACTIVE" or serving is None or not document_ids:
            return {}
        owner = Owner(record.id, record.incarnation, serving.number, serving.digest_key)
        entries = [*self._store.entries.of_documents(serving.index_name, owner, document_ids)]
        # Read the versions after the entries, so that entries of a version replaced meanwhile do
        # not count.
        versions = self.catalog.readable.versions(
            tenant_id, serving.number, document_ids, self.policy.principals(caller)
        )
        keys = {
            id_: version.indexed_key
            for id_, version in versions.items()
            if self.policy.permits(caller, version)
        }
        intact = [entry for entry in entries if entry.intact]
        chunks: dict[str, list[StoredEntry]] = {}
        for entry in sorted(intact, key=lambda stored: int(stored.fields["ordinal"])):
            document_id = entry.fields["document_id"]
            if keys.get(document_id) == entry.index_key:
                chunks.setdefault(document_id, []).append(entry)
        return chunks


def _build_text(document_id: str, chunks: Sequence[StoredEntry]) -> DocumentText:
    fields = chunks[0].fields
    # Leave out blocks of pages, since passages also contain their text.
    text = "".join(_join_chunks(chunk for chunk in chunks if not chunk.fields.get("within")))
    return DocumentText(document_id, fields["uri"], fields.get("title"), text)


def _join_chunks(chunks: Iterable[StoredEntry]) -> Iterator[str]:
    """Yield the texts of chunks in order, without the characters that a chunk repeats."""
    at: int | None = None
    for chunk in chunks:
        start, end, text = chunk.fields["start"], chunk.fields["end"], chunk.fields["text"]
        if at is None or start > at:
            yield "" if at is None else _WITHHELD if start - at > _MAX_BLANKS else "\n\n"
            yield text
        elif end > at:
            yield text[at - start :]
        at = end if at is None else max(at, end)
