"""The tree of a workspace: what may be put into it, and who reads a page."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.workspace_responses import PageAccess, TreeChange
from rag_assets.common.errors import InvalidRequest, NoWorkspace
from rag_assets.common.principals import GUESTS
from rag_assets.pipeline.blobs import drop_blobs
from rag_assets.privacy.described import described_spans
from rag_assets.privacy.masker import Masker
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.workspace.settings import PROFILE
from rag_assets.workspace.tree import (
    MOST_UUID,
    PAGE_UUID,
    ROOT,
    UUID_RULE,
    Page,
    in_order,
    judged,
    standing_of,
)

MOST_READERS = 1_000
MOST_READER_BYTES = 2_000
"""Of a name: more may not fit into an index of Postgres beside its page."""


def _reader(name: str) -> str:
    if len(name.encode()) > MOST_READER_BYTES:
        raise ValueError(f"the name of a reader has {MOST_READER_BYTES:,} bytes at most")
    if name == GUESTS:
        raise ValueError("guests are no reader of their own: name them, or a group of theirs")
    return name


PageUuid = Annotated[str, StringConstraints(pattern=PAGE_UUID, max_length=MOST_UUID)]
Principal = Annotated[
    str,
    StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=1_000),
    AfterValidator(_reader),
]


class PageDraft(BaseModel):
    """A page or a database of a workspace, as it stands in its tree.

    Attributes:
        parent: the page above it; null: the root of the workspace.
        inherit: whether `read` is added to those who read what is above it; else it replaces them.
        read: who reads it and what is below it: a subject, a group as group:NAME, or `members`.
        archived: whether it and what is below it leave the knowledge.
        ai: `off` takes it and what is below it out of the knowledge.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["page", "database"] = "page"
    parent: PageUuid | None = None
    inherit: bool = True
    read: Annotated[list[Principal], Field(max_length=MOST_READERS)] = []
    archived: bool = False
    ai: Literal["on", "off"] = "on"

    def page(self, uuid: str) -> Page:
        """The page of that id.

        Raises:
            InvalidRequest: it is no id of a page; or the root is put below another page, or out of
                the knowledge.
        """
        if len(uuid) > MOST_UUID or not re.fullmatch(PAGE_UUID, uuid):
            raise InvalidRequest(f"the page cannot be put: {UUID_RULE}", hint="choose another id")
        is_root = uuid == ROOT
        if is_root and self != PageDraft(inherit=False, read=self.read):
            raise InvalidRequest(
                "of the root only its readers can be set: inherit must be false, and it has no"
                " parent",
                hint='send {"inherit": false, "read": [...]}',
            )
        return Page(
            uuid=uuid,
            kind="root" if is_root else self.kind,
            parent=None if is_root else self.parent or ROOT,
            inherit=self.inherit,
            readers=tuple(dict.fromkeys(self.read)),
            archived=self.archived,
            ai=self.ai == "on",
        )


class TreeService:
    """Changes the trees of workspaces, and tells who reads a page.

    Args:
        catalog: has them.
        blobs: contents of files, which go with their pages.
        masker: finds credentials, which no id and no principal may be.
    """

    def __init__(self, catalog: Catalog, blobs: BlobStore, masker: Masker) -> None:
        self._catalog, self._blobs = catalog, blobs
        self._masker = masker

    def put(self, tenant_id: str, uuid: str, draft: PageDraft) -> TreeChange:
        """Put a page, or what it is now.

        Raises:
            UnknownTenant: there is none of that id.
            NoWorkspace: it is no workspace.
            InvalidRequest: it would be below itself, or too far from the root; or a name is one
                that cannot be stored.
        """
        record = self._workspace(tenant_id)
        page = draft.page(uuid)
        named = (("uuid", (uuid,)), ("parent", (page.parent or ROOT,)), ("read", page.readers))
        for field, names in named:
            if any(described_spans(n) or self._masker.holds_credential(n) for n in names):
                raise InvalidRequest(
                    f"{field}: it must hold no credential", hint="it is stored and shown as it is"
                )
        done = self._catalog.pages.put(record.ref, page)
        return TreeChange(done.scope, done.documents)

    def remove(self, tenant_id: str, uuid: str, by: str) -> TreeChange:
        """Delete a page, and all that hangs on it.

        Raises:
            UnknownTenant, NoWorkspace: see put().
            InvalidRequest: it is the root.
        """
        record = self._workspace(tenant_id)
        if uuid == ROOT:
            raise InvalidRequest(
                "the root of a workspace cannot be deleted",
                hint="`rag-assets tenants remove` removes a whole workspace",
            )
        done = self._catalog.pages.remove(record.ref, uuid, by)
        if done.blobs:
            drop_blobs(self._catalog, self._blobs, record.ref, done.blobs)
        return TreeChange(done.scope, done.documents)

    def pages(self, tenant_id: str) -> list[tuple[Page, int]]:
        """All pages, each before those below it, with how far it is from the topmost one.

        Raises:
            UnknownTenant, NoWorkspace: see put().
        """
        record = self._workspace(tenant_id)
        return [*in_order(page for page, _ in self._catalog.pages.all(record.id))]

    def access(self, tenant_id: str, uuid: str, principals: tuple[str, ...]) -> PageAccess:
        """Whether one of these principals may read what hangs on a page, and by what.

        Raises:
            UnknownTenant, NoWorkspace: see put().
        """
        record = self._workspace(tenant_id)
        path = self._catalog.pages.path(record.id, uuid)
        grants = self._catalog.access.grants(record.id, standing_of(path).scopes)
        found = judged(path, grants, principals)
        return PageAccess(
            page_uuid=uuid,
            principals=principals,
            readable=found.readable,
            scope=found.scope,
            by_page=found.by_page,
            by_principal=found.by_principal,
            reason=found.reason,
        )

    def _workspace(self, tenant_id: str) -> TenantRecord:
        record = self._catalog.tenants.get(tenant_id)
        if record.profile != PROFILE:
            raise NoWorkspace(
                f"tenant {tenant_id!r} has the profile {record.profile!r}",
                hint=f"pages are those of tenants with the profile {PROFILE}",
            )
        return record
