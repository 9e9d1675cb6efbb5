"""Properties of a page that follow from it and from the pages above it."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import InvalidRequest
from rag_assets.ingest.sources.records import EXCLUDED, NOBODY, ROOT, build_page_scope
from rag_assets.systems.workspace.tree import (
    MAX_DEPTH,
    Page,
    TreePlan,
    compute_effective_access,
    create_root,
    decide_access,
    find_pages_in_loops,
    loop_error,
    plan_tree,
)

ROOT_PAGE = create_root()


def page(uuid: str, parent: str = ROOT, **said: object) -> Page:
    return Page(uuid=uuid, parent=parent, **said)  # type: ignore[arg-type]


def planned(changed: Page, above: list[Page], below: list[Page]) -> TreePlan:
    tree = {one.uuid: one for one in (*above, *below)} | {changed.uuid: changed}
    if find_pages_in_loops(tree):
        raise loop_error()
    return plan_tree([changed], [*above, *below])


def test_a_page_without_readers_inherits_the_nearest_scope() -> None:
    team = page("team", readers=("ada",))
    plan = planned(page("notes", "team"), [ROOT_PAGE, team], [page("deep", "notes")])
    assert plan.scopes == {"notes": build_page_scope("team"), "deep": build_page_scope("team")}
    assert plan.ancestors == {}


def test_readers_are_added_to_those_above_or_replace_them() -> None:
    added = planned(page("a", readers=("ada",)), [ROOT_PAGE], [])
    assert added.ancestors == {build_page_scope("a"): (build_page_scope(ROOT),)}
    replaced = planned(page("a", readers=("ada",), inherit=False), [ROOT_PAGE], [])
    assert replaced.ancestors == {build_page_scope("a"): ()}
    # A page without any reader is read by nobody, which is not what a silent one is.
    closed = planned(page("a", inherit=False), [ROOT_PAGE], [page("b", "a")])
    assert closed.scopes == {"a": build_page_scope("a"), "b": build_page_scope("a")}


def test_an_excluded_page_excludes_all_pages_below() -> None:
    below = [page("b", "a", readers=("ada",), inherit=False), page("c", "b")]
    for out in (page("a", archived=True), page("a", ai=False)):
        plan = planned(out, [ROOT_PAGE], below)
        assert set(plan.scopes.values()) == {EXCLUDED}
    back = planned(page("a"), [ROOT_PAGE], below)
    scopes = {"a": ROOT, "b": "b", "c": "b"}
    assert back.scopes == {uuid: build_page_scope(of) for uuid, of in scopes.items()}


def test_nobody_reads_pages_below_an_unknown_page() -> None:
    orphan = page("b", "unknown", readers=("ada",), inherit=False)
    assert planned(orphan, [], []).scopes == {"b": NOBODY}
    named = planned(page("unknown"), [ROOT_PAGE], [orphan])
    assert named.scopes == {"unknown": build_page_scope(ROOT), "b": build_page_scope("b")}


def test_no_page_is_below_itself() -> None:
    for above in ([page("a")], [ROOT_PAGE, page("a"), page("b", "a")]):
        with pytest.raises(InvalidRequest, match="below itself"):
            planned(page("a", above[-1].uuid), above, [])


def test_a_tree_has_a_deepest_level() -> None:
    chain = [ROOT_PAGE]
    for number in range(MAX_DEPTH - 2):
        chain.append(page(f"p{number}", chain[-1].uuid))
    deepest = planned(page("last", chain[-1].uuid), chain, [])
    assert deepest.scopes == {"last": build_page_scope(ROOT)}
    with pytest.raises(InvalidRequest, match="more than"):
        planned(page("last", chain[-1].uuid), chain, [page("below", "last")])


def test_an_unknown_root_is_no_root() -> None:
    assert not compute_effective_access([page("a"), page("b", "a")]).is_known
    assert compute_effective_access([ROOT_PAGE, page("a")]).is_known


def test_a_verdict_names_the_page_and_the_grant() -> None:
    path = [ROOT_PAGE, page("a", readers=("ada",)), page("b", "a", readers=("bob",))]
    grants = {build_page_scope(one.uuid): one.readers for one in path}
    assert (found := decide_access(path, grants, ("ada",))).readable
    assert (found.by_page, found.by_principal) == ("a", "ada")
    assert decide_access(path, grants, ("group:x", "members")).by_page == ROOT
    assert not decide_access(path, grants, ("eve",)).readable
    taken = decide_access([*path[:2], page("b", "a", archived=True)], grants, ("ada",))
    assert (taken.readable, taken.by_page, taken.scope) == (False, "b", EXCLUDED)
    unknown = decide_access([page("b", "a")], grants, ("ada",))
    assert (unknown.readable, unknown.by_page) == (False, "a")
    assert decide_access([], grants, ("ada",)).scope == NOBODY
