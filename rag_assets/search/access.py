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
_BLANKS = 16
"""Maximum blanks between two adjacent chunks. Chunks start and end with words."""


class ScopedDocument(Protocol):
    """A document or a part of one, with the scope and uri that the catalog has for it now."""

    @property
    def access_scope(self) -> str:
        """Return the scope that a caller needs to read the document."""

    @property
    def uri(self) -> str:
        """Return the document's uri."""


class AccessPolicy(Protocol):
    """Decides which documents a caller may read.

    The grants in the catalog limit every policy. A policy may narrow them. It can widen access only
    by adding principals, whose grants are then looked up.
    """

    def principals(self, caller: Caller) -> tuple[str, ...]:
        """Return the principals of a caller, by which grants are looked up."""

    def scopes(self, caller: Caller, granted: frozenset[str]) -> frozenset[str]:
        """Return the access scopes that filter searches of the index.

        Args:
            granted: all scopes that the caller's principals may read, including the public scope.
        """

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:
        """Return whether the caller may read a document that the current grants allow."""


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
    """Split recently moved pages into readable and unreadable ones, by their current scopes."""
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
    """Require that a caller may query tenants of a profile.

    Raises:
        RoleRefused: the caller's role may not query them.
    """
    if not may_query(profile, caller):
        roles = " or ".join(sorted(get_profile(profile).asked_by))
        raise RoleRefused(
            f"only the role {roles} may query this tenant",
            hint=f"use a token with the role {roles}",
        )


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's indexed text.

    Attributes:
        text: the chunks, joined. There is a gap for each chunk that was withheld because of a
            credential, or that was altered in the index.
    """

    document_id: str
    uri: str
    title: str | None
    text: str


class DocumentReader:
    """Lists and reads documents of the serving generation.

    Args:
        catalog: knows the documents and who may read them.
        store: holds their text.
        policy: decides what callers may read.
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
        """List the first documents that the caller may read, by uri, starting after a `place`.

        Raises:
            UnknownTenant: no tenant has this id.
            RoleRefused: the caller's role may not query this tenant.
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
        """Return the text of a document.

        Raises:
            UnknownTenant: no tenant has this id.
            RoleRefused: the caller's role may not query this tenant.
            UnknownDocument: no document has this id, or the caller may not read it.
        """
        return _build_text(document_id, self.entries(tenant_id, caller, document_id))

    def read_all(
        self, tenant_id: str, caller: Caller, document_ids: Sequence[str]
    ) -> dict[str, DocumentText]:
        """Return, by id, the named documents that have a text and that the caller may read.

        Raises:
            UnknownTenant, RoleRefused: see read().
        """
        found = self.read_entries_of(tenant_id, caller, document_ids)
        return {id_: _build_text(id_, chunks) for id_, chunks in found.items()}

    def entries(self, tenant_id: str, caller: Caller, document_id: str) -> Sequence[StoredEntry]:
        """Return the entries of a document, in order; at least one.

        Raises:
            UnknownTenant, RoleRefused, UnknownDocument: see read().
        """
        # No id contains a zero byte; Postgres would reject one with an error.
        asked = [] if "\0" in document_id else [document_id]
        found = self.read_entries_of(tenant_id, caller, asked)
        if document_id not in found:
            raise UnknownDocument(
                f"tenant {tenant_id!r} has no such document",
                hint="use an id from the list of documents",
            )
        return found[document_id]

    def read_entries_of(
        self, tenant_id: str, caller: Caller, document_ids: Sequence[str]
    ) -> Mapping[str, Sequence[StoredEntry]]:
        """Return, in order, the entries of those named documents that the caller may read.

        Raises:
            UnknownTenant, RoleRefused: see read().
        """
        record = self.catalog.tenants.get(tenant_id)
        require_query_role(record.profile, caller)
        serving = self.catalog.generations.serving(tenant_id)
        if record.state != "ACTIVE" or serving is None or not document_ids:
            return {}
        owner = Owner(record.id, record.incarnation, serving.number, serving.digest_key)
        found = [*self._store.entries.of_documents(serving.index_name, owner, document_ids)]
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
        intact = [entry for entry in found if entry.intact]
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
    """Yield the texts of chunks in order, without their overlaps."""
    at: int | None = None
    for chunk in chunks:
        start, end, text = chunk.fields["start"], chunk.fields["end"], chunk.fields["text"]
        if at is None or start > at:
            yield "" if at is None else _WITHHELD if start - at > _BLANKS else "\n\n"
            yield text
        elif end > at:
            yield text[at - start :]
        at = end if at is None else max(at, end)
