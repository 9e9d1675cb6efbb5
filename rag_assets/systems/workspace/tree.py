"""Access to pages, computed from a page and the pages above it, without a server.

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

DEEPEST: Final = 200
"""Maximum depth of a page, because each page is stored with its chain of scopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A node of a workspace's tree.

    Attributes:
        uuid: id of the page in the application.
        parent: the page above it; None for the root alone.
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
    def is_out(self) -> bool:
        """Return whether the page excludes itself and the pages below it from searches."""
        return self.archived or not self.ai

    @property
    def shape(self) -> tuple[object, ...]:
        """Return the fields that pages below depend on; the names of readers do not matter."""
        return self.parent, self.inherit, self.has_own_scope, self.is_out


def new_root() -> Page:
    """Return the initial root, which all members may read."""
    return Page(uuid=ROOT, kind="root", parent=None, inherit=False, readers=(MEMBERS,))


@dataclass(frozen=True, slots=True)
class Standing:
    """The result of following all pages from the root down to a page.

    Attributes:
        scopes: the scopes that grant access to the page: the nearest scope, then the inherited
            scopes.
        is_known: whether every page above the page is known.
        is_out: whether the page is excluded from searches.
        depth: number of pages from the root down to the page, including both.
    """

    scopes: tuple[str, ...] = ()
    is_known: bool = False
    is_out: bool = False
    depth: int = 0

    @property
    def scope(self) -> str:
        """Return the access scope of the documents of the page."""
        if self.is_out:
            return EXCLUDED
        return self.scopes[0] if self.is_known and self.scopes else NOBODY

    def below(self, page: Page) -> Standing:
        """Return the standing of a page directly below."""
        scopes = self.scopes
        if page.has_own_scope:
            scopes = (build_page_scope(page.uuid), *(scopes if page.inherit else ()))
        known = self.is_known or page.kind == "root"
        return Standing(scopes, known, self.is_out or page.is_out, self.depth + 1)


@dataclass(frozen=True, slots=True)
class TreePlan:
    """The scopes that result from putting pages.

    Attributes:
        scopes: scope of the documents of each of these pages and of all pages below them, by uuid.
        ancestors: for each scope among these pages, the scopes that it inherits from.
    """

    scopes: Mapping[str, str] = field(default_factory=dict)
    ancestors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def find_standing(path: Iterable[Page]) -> Standing:
    """Return the standing of the last of these pages, each directly below the one before.

    If the first page is not the root, a page above it is unknown.
    """
    standing = Standing()
    for page in path:
        standing = standing.below(page)
    return standing


def plan_tree(changed: Iterable[Page], pages: Iterable[Page]) -> TreePlan:
    """Return the scopes that result from putting pages into a tree.

    Args:
        changed: the pages as they are put, in any order; none of them is below itself.
        pages: the pages above and below the changed pages, and the former state of the changed
            pages.

    Raises:
        InvalidRequest: a page would be too far from the root.
    """
    wanted = {page.uuid: page for page in changed}
    tree = {page.uuid: page for page in pages} | wanted
    below: dict[str | None, list[str]] = {}
    for page in tree.values():
        below.setdefault(page.parent, []).append(page.uuid)
    standings: dict[str, Standing] = {}
    left, affected = [*wanted], set[str]()
    while left:
        uuid = left.pop()
        if uuid not in affected:
            affected.add(uuid)
            left += below.get(uuid, ())
    for uuid in affected:
        _add_standings(uuid, tree, standings)
    if max((standings[uuid].depth for uuid in affected), default=0) > DEEPEST:
        raise InvalidRequest(
            f"parent: the tree would be more than {DEEPEST} levels deep",
            hint="choose a parent closer to the root",
        )
    return TreePlan(
        {uuid: standings[uuid].scope for uuid in affected},
        {
            build_page_scope(uuid): standings[uuid].scopes[1:]
            for uuid in affected
            if tree[uuid].has_own_scope
        },
    )


def _add_standings(uuid: str, tree: Mapping[str, Page], standings: dict[str, Standing]) -> None:
    """Add the standings of a page and of the pages above it."""
    path: list[Page] = []
    at: str | None = uuid
    while at is not None and at in tree and at not in standings:
        path.append(tree[at])
        at = tree[at].parent
    standing = standings.get(at or "", Standing())
    for page in reversed(path):
        standing = standings[page.uuid] = standing.below(page)


def find_loops(tree: Mapping[str, Page]) -> set[str]:
    """Return the pages of a tree that are below themselves."""
    looping, done = set[str](), set[str]()
    for uuid in tree:
        path: dict[str, int] = {}
        at: str | None = uuid
        while at is not None and at in tree and at not in done and at not in path:
            path[at] = len(path)
            at = tree[at].parent
        if at is not None and at in path:
            looping |= {one for one, place in path.items() if place >= path[at]}
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
    left = [(page, 0) for page in sorted(below.get(None, ()), key=_root_first)]
    while left:
        page, depth = left.pop()
        yield page, depth
        lower = sorted(below.get(page.uuid, ()), key=lambda one: one.uuid, reverse=True)
        left += [(one, depth + 1) for one in lower]


def _root_first(page: Page) -> tuple[bool, str]:
    return page.kind == "root", page.uuid


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether principals may read a page, and the page and principal that decide it.

    Attributes:
        by_page: the page that grants access, or that is excluded from searches.
        by_principal: the principal that was granted access.
    """

    readable: bool
    scope: str
    by_page: str | None
    by_principal: str | None
    reason: str


def judge_access(
    path: Sequence[Page], grants: Mapping[str, Iterable[str]], principals: Sequence[str]
) -> Verdict:
    """Decide whether principals may read a page.

    Args:
        path: the pages above the page, from the highest known page down, and then the page itself.
        grants: who may read each scope.
        principals: the names of the reader, such as a subject and its groups.
    """
    standing = find_standing(path)
    out = next((page for page in path if page.is_out), None)
    if out is not None:
        why = "archived" if out.archived else "excluded from the knowledge"
        return Verdict(False, standing.scope, out.uuid, None, f"page {out.uuid} is {why}")
    if not standing.is_known:
        above = path[0].parent if path else None
        unknown = "the page is" if above is None else f"page {above}, above it, is"
        return Verdict(False, standing.scope, above, None, f"{unknown} not known")
    for scope in standing.scopes:
        granted = next(
            (principal for principal in principals if principal in set(grants.get(scope, ()))), None
        )
        if granted is not None:
            uuid = scope.removeprefix(build_page_scope(""))
            return Verdict(
                True, standing.scope, uuid, granted, f"page {uuid} is granted to {granted}"
            )
    why = "none of the pages that decide is granted"
    if MEMBERS not in principals and any(MEMBERS in grants.get(one, ()) for one in standing.scopes):
        why += (
            f" to these names, but one is to {MEMBERS}: a subject who is not a guest reads it as a"
            f" member; pass principal={MEMBERS} in addition to the subject's name"
        )
    return Verdict(False, standing.scope, None, None, why)
