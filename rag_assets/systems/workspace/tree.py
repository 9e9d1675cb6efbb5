"""Access to pages, computed from a page and the pages above it, without a database.

A page that sets readers has its own access scope; every other page has the scope of the nearest
page above it that sets readers. A scope may inherit from the next scope above it; the readers of
that scope then also read its documents. Documents have the scope of their page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from rag_assets.common.errors import InvalidRequest
from rag_assets.common.principals import MEMBERS
from rag_assets.ingest.sources.records import EXCLUDED, NOBODY, ROOT, build_page_scope

Kind: TypeAlias = Literal["root", "page", "database"]

MAX_DEPTH: Final = 200
"""Maximum depth of a page, because each page is stored with its chain of scopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A node of a workspace's tree.

    Attributes:
        uuid: id of the page in the application.
        parent: uuid of the page above it; None only for the root.
        inherit: whether the page's readers are added to the readers of the page above; otherwise
            they replace those readers.
        readers: principals that may read the page and the pages below it.
        archived: whether the page and the pages below it are excluded from searches.
        ai: whether the page and the pages below it may be included in searches.
    """

    uuid: str
    kind: Kind = "page"
    parent: str | None = ROOT
    inherit: bool = True
    readers: tuple[str, ...] = ()
    archived: bool = False
    ai: bool = True

    @property
    def has_own_scope(self) -> bool:
        """Return whether the page has its own access scope."""
        return bool(self.readers) or not self.inherit

    @property
    def is_excluded(self) -> bool:
        """Return whether the page excludes itself and the pages below it from searches."""
        return self.archived or not self.ai

    @property
    def shape(self) -> tuple[object, ...]:
        """Return a page's fields that affect access to the pages below it.

        Names of readers are not included: pages below inherit the scope, not the names.
        """
        return self.parent, self.inherit, self.has_own_scope, self.is_excluded


def create_root() -> Page:
    """Return the initial root, which all members may read."""
    return Page(uuid=ROOT, kind="root", parent=None, inherit=False, readers=(MEMBERS,))


@dataclass(frozen=True, slots=True)
class EffectiveAccess:
    """Who may read a page, as determined by the page and all pages above it.

    Attributes:
        scopes: the scopes that grant access to the page: the nearest scope, then the inherited
            scopes.
        is_known: whether every page above the page is known.
        is_excluded: whether the page is excluded from searches.
        depth: number of pages from the root down to the page, including both.
    """

    scopes: tuple[str, ...] = ()
    is_known: bool = False
    is_excluded: bool = False
    depth: int = 0

    @property
    def scope(self) -> str:
        """Return the access scope of the documents of the page."""
        if self.is_excluded:
            return EXCLUDED
        return self.scopes[0] if self.is_known and self.scopes else NOBODY

    def extend(self, page: Page) -> EffectiveAccess:
        """Return the access to `page`, which is directly below the page of this access."""
        scopes = self.scopes
        if page.has_own_scope:
            scopes = (build_page_scope(page.uuid), *(scopes if page.inherit else ()))
        known = self.is_known or page.kind == "root"
        return EffectiveAccess(scopes, known, self.is_excluded or page.is_excluded, self.depth + 1)


@dataclass(frozen=True, slots=True)
class TreePlan:
    """The access scopes of a tree after pages were put into it.

    Attributes:
        scopes: scope of the documents of each affected page, by uuid.
        ancestors: the scopes from which each affected scope inherits.
    """

    scopes: Mapping[str, str] = field(default_factory=dict)
    ancestors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def compute_effective_access(path: Iterable[Page]) -> EffectiveAccess:
    """Return the access to the last page of a path; each page in it is below the previous page.

    If the first page is not the root, a page above it is unknown.
    """
    access = EffectiveAccess()
    for page in path:
        access = access.extend(page)
    return access


def plan_tree(changed: Iterable[Page], pages: Iterable[Page]) -> TreePlan:
    """Return the access scopes of a tree after pages are put into it.

    Args:
        changed: the pages to put, in any order; none of them is below itself.
        pages: all pages above and below them, and their former state.

    Raises:
        InvalidRequest: a page would be too far from the root.
    """
    changed_pages = {page.uuid: page for page in changed}
    tree = {page.uuid: page for page in pages} | changed_pages
    below: dict[str | None, list[str]] = {}
    for page in tree.values():
        below.setdefault(page.parent, []).append(page.uuid)
    accesses: dict[str, EffectiveAccess] = {}
    unvisited, affected = [*changed_pages], set[str]()
    while unvisited:
        uuid = unvisited.pop()
        if uuid not in affected:
            affected.add(uuid)
            unvisited += below.get(uuid, ())
    for uuid in affected:
        _add_access_along_path(uuid, tree, accesses)
    if max((accesses[uuid].depth for uuid in affected), default=0) > MAX_DEPTH:
        raise InvalidRequest(
            f"parent: the tree would be more than {MAX_DEPTH} levels deep",
            hint="choose a parent closer to the root",
        )
    return TreePlan(
        {uuid: accesses[uuid].scope for uuid in affected},
        {
            build_page_scope(uuid): accesses[uuid].scopes[1:]
            for uuid in affected
            if tree[uuid].has_own_scope
        },
    )


def _add_access_along_path(
    uuid: str, tree: Mapping[str, Page], accesses: dict[str, EffectiveAccess]
) -> None:
    """Add the access to a page, and to each page above it, to `accesses` by uuid."""
    path: list[Page] = []
    at: str | None = uuid
    while at is not None and at in tree and at not in accesses:
        path.append(tree[at])
        at = tree[at].parent
    access = accesses.get(at or "", EffectiveAccess())
    for page in reversed(path):
        access = accesses[page.uuid] = access.extend(page)


def find_pages_in_loops(tree: Mapping[str, Page]) -> set[str]:
    """Return the pages of a tree that are below themselves."""
    looping, done = set[str](), set[str]()
    for uuid in tree:
        path: dict[str, int] = {}
        at: str | None = uuid
        while at is not None and at in tree and at not in done and at not in path:
            path[at] = len(path)
            at = tree[at].parent
        if at is not None and at in path:
            looping |= {page for page, position in path.items() if position >= path[at]}
        done |= path.keys()
    return looping


def loop_error() -> InvalidRequest:
    """Return the error for a page that would be below itself."""
    return InvalidRequest(
        "parent: the page would be below itself", hint="choose a different parent"
    )


def order_pages(pages: Iterable[Page]) -> Iterator[tuple[Page, int]]:
    """Yield all pages, parents first, each with its distance from the topmost page.

    Pages below an unknown page come last.
    """
    known = {page.uuid: page for page in pages}
    below: dict[str | None, list[Page]] = {}
    for page in known.values():
        below.setdefault(page.parent if page.parent in known else None, []).append(page)
    waiting_pages = [(page, 0) for page in sorted(below.get(None, ()), key=_build_root_last_key)]
    while waiting_pages:
        page, depth = waiting_pages.pop()
        yield page, depth
        children = sorted(below.get(page.uuid, ()), key=lambda child: child.uuid, reverse=True)
        waiting_pages += [(child, depth + 1) for child in children]


def _build_root_last_key(page: Page) -> tuple[bool, str]:
    return page.kind == "root", page.uuid


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether principals may read a page, and the reason.

    Attributes:
        by_page: the page that grants or excludes access, or the unknown page.
        by_principal: the principal to whom access is granted.
    """

    readable: bool
    scope: str
    by_page: str | None
    by_principal: str | None
    reason: str


def decide_access(
    path: Sequence[Page], grants: Mapping[str, Iterable[str]], principals: Sequence[str]
) -> AccessDecision:
    """Decide whether principals may read a page.

    Args:
        path: the page, preceded by the pages above it from the highest known page down.
        grants: principals that may read each scope.
        principals: the names of the reader, such as a subject and its groups.
    """
    access = compute_effective_access(path)
    out = next((page for page in path if page.is_excluded), None)
    if out is not None:
        why = "archived" if out.archived else "excluded from searches"
        return AccessDecision(False, access.scope, out.uuid, None, f"page {out.uuid} is {why}")
    if not access.is_known:
        above = path[0].parent if path else None
        unknown = "the page is" if above is None else f"page {above}, above it, is"
        return AccessDecision(False, access.scope, above, None, f"{unknown} not known")
    for scope in access.scopes:
        granted = next(
            (principal for principal in principals if principal in set(grants.get(scope, ()))), None
        )
        if granted is not None:
            uuid = scope.removeprefix(build_page_scope(""))
            return AccessDecision(
                True, access.scope, uuid, granted, f"page {uuid} is granted to {granted}"
            )
    why = "none of the pages that decide is granted"
    if MEMBERS not in principals and any(
        MEMBERS in grants.get(scope, ()) for scope in access.scopes
    ):
        why += (
            f" to these names, but one is to {MEMBERS}: a subject who is not a guest reads it as a"
            f" member; pass principal={MEMBERS} in addition to the subject's name"
        )
    return AccessDecision(False, access.scope, None, None, why)
