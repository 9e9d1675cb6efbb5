"""Access scopes: applied within the search, and immediately again to every hit."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from rag_assets.common.errors import InvalidRequest
from rag_assets.storage.catalog.accounts.access import PUBLIC
from rag_assets.storage.catalog.builds.search_state import SearchState, SearchStateReader
from tests.back_ends import EACH_BACK_END
from tests.driving import Driver
from tests.installation import FAST, Installation

pytestmark = EACH_BACK_END

SCOPES = (PUBLIC, "staff", "board")
WORDS = ("tide", "harbour", "lantern", "compass", "rudder")


@pytest.fixture(scope="module")
def shared(shared_installation: Installation, driver: Driver) -> Installation:
    root = shared_installation.home.parent / "sources" / "harbour"
    sources = []
    for scope in SCOPES:
        folder = root / scope
        folder.mkdir(parents=True)
        for number, word in enumerate(WORDS):
            (folder / f"{number}.md").write_text(f"# {word}\n\nThe {word} of {scope}.\n")
        (folder / "same.md").write_text("# Notice\n\nThe harbour is closed at night.\n")
        sources.append({"name": scope, "root": str(folder), "scope": scope})
    shared_installation.add_tenant("harbour", root=root, **{**FAST, "sources": sources})
    driver.sync("harbour")
    return shared_installation


def scopes_found(installation: Installation, *principals: str, **options: object) -> set[str]:
    options = {"mode": "hybrid", "top_k": 50, "caller": {"principals": principals}, **options}
    hits = installation.search("harbour", "tide harbour lantern compass rudder", **options)
    uris = [uri for hit in hits for uri in (hit.uri, *hit.also)]
    return {uri.partition("/")[0] for uri in uris}


def test_without_a_caller_only_public_documents_are_found(shared: Installation) -> None:
    for mode in ("knn", "text", "hybrid"):
        assert scopes_found(shared, mode=mode) == {PUBLIC}, mode


def test_grants_and_revocations_hold_with_the_next_search(
    shared: Installation, driver: Driver
) -> None:
    catalog = driver.session.catalog
    ref = catalog.tenants.get("harbour").ref
    catalog.access.grant(ref, "staff", ["ada", "group:crew"])
    catalog.access.grant(ref, "staff", ["ada"])
    catalog.access.grant(ref, "board", ["ada"])
    assert scopes_found(shared, "ada") == set(SCOPES)
    assert scopes_found(shared, "eve", "group:crew") == {PUBLIC, "staff"}
    assert scopes_found(shared, "eve") == {PUBLIC}
    assert catalog.access.revoke(ref, "staff", ["ada", "nobody"]) == 1
    assert scopes_found(shared, "ada") == {PUBLIC, "board"}
    assert catalog.access.grants("harbour") == {"board": ["ada"], "staff": ["group:crew"]}
    catalog.access.revoke(ref, "board", ["ada"])
    catalog.access.revoke(ref, "staff", ["group:crew"])
    assert scopes_found(shared, "ada", "group:crew") == {PUBLIC}


def test_a_grant_of_one_tenant_opens_nothing_of_another(
    shared: Installation, driver: Driver
) -> None:
    shared.add_tenant("quay", **FAST)
    catalog = driver.session.catalog
    driver.sync("quay")
    catalog.access.grant(catalog.tenants.get("quay").ref, "staff", ["mallory"])
    assert scopes_found(shared, "mallory") == {PUBLIC}


def test_one_text_in_several_documents_names_only_those_the_caller_reads(
    shared: Installation, driver: Driver
) -> None:
    catalog = driver.session.catalog
    ref = catalog.tenants.get("harbour").ref
    question = "The harbour is closed at night."
    [alone] = [h for h in shared.search("harbour", question, mode="text") if "closed" in h.text]
    assert (alone.uri, alone.also) == ("public/same.md", ())
    catalog.access.grant(ref, "board", ["ada"])
    hits = shared.search("harbour", question, mode="text", caller={"principals": ["ada"]})
    [hit] = [hit for hit in hits if "closed" in hit.text]
    assert {hit.uri, *hit.also} == {"public/same.md", "board/same.md"}
    catalog.access.revoke(ref, "board", ["ada"])


def test_stale_scopes_in_the_index_open_nothing(
    shared: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries with an outdated scope are verified by the catalog's present scope."""
    true = SearchStateReader.search_state

    async def everything(
        self: SearchStateReader,
        tenant_id: str,
        principals: list[str],
        *,
        max_scopes: int | None = None,
    ) -> SearchState:
        state = await true(self, tenant_id, principals, max_scopes=max_scopes)
        return replace(state, scopes=frozenset(SCOPES))

    # Remove the filter inside the search: the verification of each hit remains.
    monkeypatch.setattr(SearchStateReader, "search_state", everything)
    assert scopes_found(shared) == {PUBLIC}


@pytest.mark.parametrize("seed", range(5))
def test_no_answer_holds_what_its_caller_may_not_read(
    shared: Installation, driver: Driver, seed: int
) -> None:
    rng = random.Random(seed)
    catalog = driver.session.catalog
    ref = catalog.tenants.get("harbour").ref
    people = ["ada", "bob", "group:crew", "*", "public", "' OR 1=1"]
    granted: dict[str, set[str]] = {"staff": set(), "board": set()}
    for _ in range(12):
        scope, person = rng.choice(["staff", "board"]), rng.choice(people)
        if rng.random() < 0.6:
            catalog.access.grant(ref, scope, [person])
            granted[scope].add(person)
        else:
            catalog.access.revoke(ref, scope, [person])
            granted[scope].discard(person)
        asks = rng.sample(people, rng.randint(0, 3))
        allowed = {PUBLIC} | {s for s, names in granted.items() if names & set(asks)}
        mode = rng.choice(["knn", "text", "hybrid"])
        assert scopes_found(shared, *asks, mode=mode) == allowed
    for scope in granted:
        catalog.access.revoke(ref, scope, people)


def test_filters_narrow_inside_the_search(shared: Installation) -> None:
    def found(**options: object) -> list[str]:
        return [hit.uri for hit in shared.search("harbour", "tide rudder", top_k=50, **options)]

    assert found(filters={"paths": ["public/4.md"]}) == ["public/4.md"]
    assert found(filters={"paths": ["public/4", "pub"]}) == []
    assert found(filters={"paths": ["public"]}) == found(filters={"paths": ["public/"]}) != []
    assert found(filters={"paths": ["staff/"]}) == []
    assert found(filters={"paths": ["pub*", "public/?"]}) == []
    assert found(filters={"tags": ["none"]}) == []
    assert found(filters={"metadata": {"owner": "ada", "a.b*": "x"}}) == []
    with pytest.raises(InvalidRequest, match="no source of this tenant"):
        found(source_types=["mail"])
    [first] = found(filters={"paths": ["public/0.md"]})
    documents = [hit.document_id for hit in shared.search("harbour", "tide", top_k=50)]
    assert first == "public/0.md"
    assert len(found(filters={"documents": documents[:2]})) == 2


def test_preferred_paths_rank_higher_and_open_nothing(shared: Installation) -> None:
    question = {"query": "The lantern of public.", "mode": "knn", "top_k": 50}
    plain = [h.uri for h in shared.search("harbour", **question)]
    last = plain[-1]
    boosted = [h.uri for h in shared.search("harbour", **question, must_include_paths=[last])]
    assert boosted.index(last) < plain.index(last)
    assert sorted(boosted) == sorted(plain)
    closed = shared.search("harbour", **question, must_include_paths=["board/"])
    assert [h.uri for h in closed] == plain
    inside = {"filters": {"paths": ["public/0.md"]}, "must_include_paths": ["public/"]}
    assert [h.uri for h in shared.search("harbour", **question, **inside)] == ["public/0.md"]


def test_no_near_hit_needs_clarification(shared: Installation) -> None:
    from rag_assets.search.model import SearchRequest

    answer = shared.retriever.search("harbour", SearchRequest(query="tide", min_score=0.99))
    assert (answer.hits, answer.needs_clarification) == ((), True)
    answer = shared.retriever.search("harbour", SearchRequest(query="tide"))
    assert not answer.needs_clarification
    assert answer.debug is not None
    assert answer.debug.total_candidates >= len(answer.hits)
    assert {"catalog", "embed", "search", "read", "pack"} == set(answer.debug.latency_ms)


@pytest.mark.parametrize(
    "options",
    [
        {"caller": {"principals": ["a\0b"]}},
        {"filters": {"documents": ["\0"]}},
        {"filters": {"metadata": {"\0": "x"}}},
        {"must_include_paths": ["public/\0"]},
    ],
)
def test_a_zero_byte_is_refused_and_not_repeated(
    shared: Installation, options: dict[str, object]
) -> None:
    with pytest.raises(InvalidRequest, match="the search request is not valid") as caught:
        shared.search("harbour", "tide", **options)
    assert "\0" not in caught.value.advice
