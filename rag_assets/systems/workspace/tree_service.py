"""Changes to the tree of a workspace, and explanations of access to its pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.workspace_responses import (
    PageAccess,
    TreeChange,
    TreeDifference,
    TreePage,
    TreePages,
    TreeReconciled,
)
from rag_assets.common.errors import (
    DeletionsHeld,
    InvalidRequest,
    UnknownDocument,
)
from rag_assets.common.principals import GUESTS
from rag_assets.ingest.sources.records import MAX_UUID_LENGTH, NOBODY, PAGE_UUID, ROOT, UUID_RULE
from rag_assets.pipeline.uploads import drop_blobs
from rag_assets.privacy.described import find_described_spans
from rag_assets.privacy.masker import Masker
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.workspace.errors import require_workspace
from rag_assets.systems.workspace.page_table import ChangedPages, PageEdit, PageLists, TreeTable
from rag_assets.systems.workspace.tree import (
    Page,
    compute_effective_access,
    decide_access,
    find_pages_in_loops,
    loop_error,
    order_pages,
)

MAX_NAMED_PAGES: Final = 10_000
"""Maximum number of pages in a response, for each kind of difference."""
_MANY_PAGES: Final = 20
_MANY_SHARE: Final = 0.3
Difference: TypeAlias = Literal["missing", "stale", "extra"]

MAX_READERS = 1_000
MAX_READER_BYTES = 2_000
"""Maximum bytes of a reader's name; a Postgres index must hold it together with a page's id."""


def _check_reader(name: str) -> str:
    if len(name.encode()) > MAX_READER_BYTES:
        raise ValueError(f"the name of a reader must have at most {MAX_READER_BYTES:,} bytes")
    if name == GUESTS:
        raise ValueError(
            "guests cannot be given access all at once: add each guest by name, or add a group of"
            " guests"
        )
    return name


PageUuid = Annotated[str, StringConstraints(pattern=PAGE_UUID, max_length=MAX_UUID_LENGTH)]
Principal = Annotated[
    str,
    StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=1_000),
    AfterValidator(_check_reader),
]


class _PageFields(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["page", "database"] = "page"
    parent: PageUuid | None = None
    inherit: bool = True
    read: Annotated[list[Principal], Field(max_length=MAX_READERS)] = []
    archived: bool = False
    ai: Literal["on", "off"] = "on"


class PageDraft(_PageFields):
    """A page or a database of a workspace, with its position in the tree.

    Attributes:
        parent: uuid of the page above it; null stands for the root of the workspace.
        inherit: whether `read` is added to the readers of the page above; otherwise it replaces
            those readers.
        read: readers of the page and of the pages below it: subjects, group:NAME, or `members`.
        archived: whether the page and the pages below it are excluded from searches.
        ai: `off` excludes the page and the pages below it from searches.
    """

    def build_page(self, uuid: str) -> Page:
        """Return the page with this id and the fields of the draft.

        Raises:
            InvalidRequest: the id is malformed, or the root would be put below another page or
                excluded from searches.
        """
        if len(uuid) > MAX_UUID_LENGTH or not re.fullmatch(PAGE_UUID, uuid):
            raise InvalidRequest(
                f"the page cannot be stored: {UUID_RULE}", hint="choose a different id"
            )
        is_root = uuid == ROOT
        if is_root and self != PageDraft(inherit=False, read=self.read):
            raise InvalidRequest(
                "only the readers of the root can be set: inherit must be false, and the root"
                " must not have a parent",
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


class PageChange(_PageFields):
    """A change of a page; omitted fields stay as they are. See PageDraft."""

    def build_page(self, uuid: str, former: Page | None) -> Page:
        """Apply the change to a page, and return the changed page.

        Raises:
            UnknownDocument: the page does not exist.
        """
        if former is None:
            raise UnknownDocument(
                "the tree has no page with this id", hint="create the page with PUT first"
            )
        changes = self.model_dump(exclude_unset=True)
        return PageDraft(**{**_build_draft_values(former), **changes}).build_page(uuid)


class TreeManifestLine(PageDraft):
    """A page in a manifest of the whole tree."""

    uuid: PageUuid


def build_page_response(page: Page, scope: str) -> TreePage:
    """Return the API's response about a page."""
    return TreePage(
        uuid=page.uuid,
        kind=page.kind,
        parent=page.parent,
        inherit=page.inherit,
        read=page.readers,
        archived=page.archived,
        ai="on" if page.ai else "off",
        scope=scope,
    )


def _build_draft_values(page: Page) -> dict[str, Any]:
    is_root = page.uuid == ROOT
    return {
        "kind": "page" if is_root else page.kind,
        "parent": page.parent,
        "inherit": page.inherit,
        "read": [*page.readers],
        "archived": page.archived,
        "ai": "on" if page.ai else "off",
    }


class TreeService:
    """Changes the trees of workspaces, and explains access to pages."""

    def __init__(self, catalog: Catalog, blobs: BlobStore, masker: Masker) -> None:
        self._catalog, self._blobs = catalog, blobs
        self._masker = masker
        self._tree, self._lists = TreeTable(catalog.database), PageLists(catalog.database)

    def put(self, tenant_id: str, uuid: str, draft: PageDraft) -> TreeChange:
        """Create a page or replace it.

        Raises:
            UnknownTenant: no tenant has this id.
            NoWorkspace: the tenant is not a workspace.
            InvalidRequest: the page would be below itself or too far from the root, or a name
                cannot be stored.
        """
        page = draft.build_page(uuid)
        return self._change_one(tenant_id, uuid, lambda _: page)

    def change(self, tenant_id: str, uuid: str, change: PageChange) -> TreeChange:
        """Change the fields of a page that the change sets.

        Raises:
            UnknownDocument: the page does not exist.
        """
        return self._change_one(tenant_id, uuid, lambda former: change.build_page(uuid, former))

    def change_many(self, tenant_id: str, edits: Sequence[PageEdit]) -> ChangedPages:
        """Put and change pages in one transaction; see TreeTable.change().

        Raises:
            InvalidRequest: a page would be too far from the root. The tree is left unchanged.
        """
        record = self._require_workspace(tenant_id)
        return self._tree.change(record.ref, [*map(self._add_credential_check, edits)])

    def reconcile(
        self,
        tenant_id: str,
        wanted: Mapping[str, Page],
        *,
        as_of: datetime,
        by: str,
        apply: bool,
        remove_extra: bool = True,
        allow_deletes: bool = False,
        keep: Collection[str] = (),
    ) -> TreeReconciled:
        """Compare a tree with an application's complete list of pages, and apply it if requested.

        Args:
            wanted: all pages by uuid, including the parent of each page except the root.
            as_of: time of the list; pages that were put later are not extra.
            remove_extra: whether to also remove extra pages, with all their records.
            allow_deletes: whether to remove extra pages even if they are suspiciously many.
            keep: pages that are not removed even if `wanted` lacks them; nor are the pages above
                them.

        Raises:
            UnknownTenant, NoWorkspace, InvalidRequest: see put(). The tree is left unchanged.
            DeletionsHeld: suspiciously many pages would be removed. The tree is left unchanged.
        """
        record = self._require_workspace(tenant_id)
        if find_pages_in_loops(wanted):
            raise loop_error()
        known = self._lists.read_all_with_times(record.id)
        ancestors = _add_ancestors(keep, {uuid: page for uuid, (page, _) in known.items()})
        others = {uuid for uuid, (page, _) in known.items() if wanted.get(uuid, page) != page}
        differing: dict[Difference, list[str]] = {
            "missing": sorted(wanted.keys() - known.keys() - {ROOT}),
            "stale": sorted(others),
            "extra": sorted(
                uuid
                for uuid, (_, at) in known.items()
                if uuid not in wanted and uuid not in ancestors and at <= as_of
            ),
        }
        documents, extra = 0, differing["extra"]
        removed = extra if apply and remove_extra else []
        if removed and not allow_deletes:
            _require_few_removals(len(extra), len(known))
        if apply:
            named_pages = {*differing["missing"], *differing["stale"]} | ({ROOT} & wanted.keys())
            pages = [wanted[uuid] for uuid in sorted(named_pages)]
            for page in pages:
                self.require_no_credential(page)
            edits: list[PageEdit] = [(page.uuid, partial(_replace_page, page)) for page in pages]
            documents = self._tree.change(record.ref, edits).documents
        if removed:
            documents += self._remove(record.ref, removed, by).documents
        return TreeReconciled(
            missing=len(differing["missing"]),
            stale=len(differing["stale"]),
            extra=len(extra),
            removed=len(removed),
            documents=documents,
            pages=tuple(
                TreeDifference(uuid, difference)
                for difference, uuids in differing.items()
                for uuid in uuids[:MAX_NAMED_PAGES]
            ),
        )

    def remove(self, tenant_id: str, uuid: str, by: str) -> TreeChange:
        """Delete a page, the pages below it, and their records.

        Raises:
            InvalidRequest: the page is the root.
        """
        record = self._require_workspace(tenant_id)
        if uuid == ROOT:
            raise InvalidRequest(
                "the root of a workspace cannot be deleted",
                hint="run `rag-assets tenants remove` to remove the whole workspace",
            )
        return self._remove(record.ref, [uuid], by)

    def get_page(self, tenant_id: str, uuid: str) -> TreePage:
        """Return one page.

        Raises:
            UnknownDocument: the page does not exist.
        """
        record = self._require_workspace(tenant_id)
        path = self._lists.read_path(record.id, uuid)
        if not path:
            raise UnknownDocument(
                "the tree has no page with this id", hint="create the page with PUT first"
            )
        return build_page_response(path[-1], compute_effective_access(path).scope)

    def list_pages_after(
        self, tenant_id: str, *, parent: str | None, after: str | None, limit: int
    ) -> TreePages:
        """Return up to `limit` pages after the page `after`, ordered by uuid."""
        record = self._require_workspace(tenant_id)
        pages = self._lists.list_page(record.id, parent=parent, after=after, limit=limit + 1)
        shown_pages = tuple(build_page_response(page, scope) for page, scope in pages[:limit])
        return TreePages(shown_pages, shown_pages[-1].uuid if len(pages) > limit else None)

    def list_all_pages(self, tenant_id: str) -> list[tuple[Page, int]]:
        """Return all pages, parents first, each with its distance from the topmost page."""
        record = self._require_workspace(tenant_id)
        return [*order_pages(page for page, _ in self._lists.list_all(record.id))]

    def explain_access(self, tenant_id: str, uuid: str, principals: tuple[str, ...]) -> PageAccess:
        """Explain whether one of these principals may read a page's documents."""
        record = self._require_workspace(tenant_id)
        path = self._lists.read_path(record.id, uuid)
        grants = self._catalog.access.grants(record.id, compute_effective_access(path).scopes)
        decision = decide_access(path, grants, principals)
        return PageAccess(page_uuid=uuid, principals=principals, **asdict(decision))

    def _change_one(
        self, tenant_id: str, uuid: str, edit: Callable[[Page | None], Page]
    ) -> TreeChange:
        done = self.change_many(tenant_id, [(uuid, edit)])
        for error in done.refused.values():
            raise error
        return TreeChange(done.scopes[uuid], done.documents)

    def _add_credential_check(self, edit: PageEdit) -> PageEdit:
        uuid, change = edit

        def change_and_check(former: Page | None) -> Page:
            page = change(former)
            self.require_no_credential(page)
            return page

        return uuid, change_and_check

    def require_no_credential(self, page: Page) -> None:
        """Refuse a page with a credential in its ids or readers, which are never masked.

        Raises:
            InvalidRequest: an id or a reader's name contains a credential.
        """
        fields = (
            ("uuid", (page.uuid,)),
            ("parent", (page.parent or ROOT,)),
            ("read", page.readers),
        )
        for field, names in fields:
            if any(find_described_spans(n) or self._masker.holds_credential(n) for n in names):
                raise InvalidRequest(
                    f"{field}: the value contains a credential",
                    hint="remove the credential, because the value is stored and shown unmasked",
                )

    def _remove(self, ref: TenantRef, uuids: Sequence[str], by: str) -> TreeChange:
        documents, blobs = self._tree.remove(ref, uuids, by)
        if blobs:
            drop_blobs(self._catalog, self._blobs, ref, blobs)
        return TreeChange(NOBODY, documents)

    def _require_workspace(self, tenant_id: str) -> TenantRecord:
        return require_workspace(self._catalog.tenants.get(tenant_id), "pages")


def _add_ancestors(uuids: Collection[str], known: Mapping[str, Page]) -> set[str]:
    """Return these pages and all pages above them."""
    known_ancestors, unvisited = set[str](), [*uuids]
    while unvisited:
        uuid = unvisited.pop()
        if uuid not in known_ancestors:
            known_ancestors.add(uuid)
            above = known[uuid].parent if uuid in known else None
            unvisited += [] if above is None else [above]
    return known_ancestors


def _replace_page(page: Page, _former: Page | None) -> Page:
    return page


def _require_few_removals(extra: int, known: int) -> None:
    """Refuse to remove suspiciously many pages: more than 20 and more than 30 % of all pages."""
    if extra > _MANY_PAGES and extra > _MANY_SHARE * known:
        raise DeletionsHeld(
            f"{extra:,} of {known:,} pages are not in the manifest",
            hint="make sure that the manifest contains all pages, or set allow_deletes to"
            " remove the missing pages",
        )
