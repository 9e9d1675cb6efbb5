"""Search steps of systems cannot return anything that the caller may not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import pytest

from rag_assets.search import Retriever
from rag_assets.search.access import DocumentReader, FlatScopes, ScopedDocument
from rag_assets.search.model import Caller, Hit, SearchAnswer, SearchRequest
from rag_assets.search.plan import StepLists
from rag_assets.search.progress import Ranking, SearchProgress
from rag_assets.search.services import SearchServices, StepFactory
from rag_assets.storage.catalog.accounts.access import PUBLIC
from rag_assets.storage.index.model import Candidate, Owner
from tests.installation import FAST, Installation

Change = Callable[[SearchProgress], SearchProgress]
BEFORE = ("recall", "added", "verify", "fuse", "score", "read", "rerank", "budget")
BETWEEN = ("recall", "verify", "fuse", "added", "score", "read", "rerank", "budget")
AFTER = ("recall", "verify", "fuse", "score", "read", "rerank", "added", "budget")
PLACES = (BEFORE, BETWEEN, AFTER)
ADMIN = Caller(principals=("ada",))
EVERYBODY = SearchRequest(query="the tide at the harbour", top_k=50)


@pytest.fixture(scope="module")
def port(shared_installation: Installation) -> Installation:
    root = shared_installation.home.parent / "sources" / "tidal"
    sources = []
    for scope in (PUBLIC, "board"):
        folder = root / scope
        folder.mkdir(parents=True)
        for number in range(3):
            (folder / f"{number}.md").write_text(f"# Tide {number}\n\nThe {scope} tide {number}.\n")
        sources.append({"name": scope, "root": str(folder), "scope": scope})
    shared_installation.add_tenant("tidal", root=root, **{**FAST, "sources": sources})
    shared_installation.synced("tidal")
    catalog = shared_installation.session().catalog
    catalog.access.grant(catalog.tenants.get("tidal").ref, "board", ["ada"])
    return shared_installation


@dataclass
class Added:
    """A search step that changes the state."""

    change: Change

    async def run(self, state: SearchProgress) -> SearchProgress:
        return self.change(state)


@contextmanager
def retrieving(
    installation: Installation,
    names: tuple[str, ...],
    change: Change,
    policy: FlatScopes | None = None,
) -> Iterator[Retriever]:
    def made(_: SearchServices) -> Added:
        return Added(change)

    added: dict[str, StepFactory] = {"added": made}
    session = installation.session()
    steps = StepLists(added=added, profiles={"documents": names})
    parts = (session.catalog, session.store, session.embedders)
    with closing(Retriever(*parts, policy=policy, steps=steps)) as retriever:
        yield retriever


def answered(
    installation: Installation,
    names: tuple[str, ...],
    change: Change,
    request: SearchRequest = EVERYBODY,
) -> SearchAnswer:
    with retrieving(installation, names, change) as retriever:
        return retriever.search("tidal", request)


def folders(hits: tuple[Hit, ...]) -> set[str]:
    return {uri.partition("/")[0] for hit in hits for uri in (hit.uri, *hit.also)}


def everything(installation: Installation) -> SearchProgress:
    """Return the state of a search by a caller who may read everything."""
    seen: list[SearchProgress] = []

    def watched(state: SearchProgress) -> SearchProgress:
        seen.append(state)
        return state

    answer = answered(installation, AFTER, watched, EVERYBODY.model_copy(update={"caller": ADMIN}))
    assert folders(answer.hits) == {PUBLIC, "board"}
    return seen[-1]


def test_a_step_orders_and_leaves_out(port: Installation) -> None:
    def turned(state: SearchProgress) -> SearchProgress:
        return replace(state, passages=[*reversed(state.passages)][:2])

    plain = answered(port, AFTER, lambda state: state)
    uris = [hit.uri for hit in plain.hits]
    assert len(uris) == 3
    answer = answered(port, AFTER, turned)
    assert [hit.uri for hit in answer.hits] == uris[::-1][:2]
    assert answer.debug is not None
    assert "added" in answer.debug.latency_ms


@pytest.mark.parametrize("names", PLACES, ids=["before", "between", "after"])
def test_a_step_cannot_search_in_another_name(port: Installation, names: tuple[str, ...]) -> None:
    def forged(state: SearchProgress) -> SearchProgress:
        return replace(
            state,
            caller=ADMIN,
            principals=ADMIN.principals,
            scopes=frozenset({PUBLIC, "board"}),
            owner=Owner("harbour", "another", 1),
        )

    answer = answered(port, names, forged)
    assert folders(answer.hits) == {PUBLIC}
    assert len(answer.hits) == 3


@pytest.mark.parametrize("names", PLACES, ids=["before", "between", "after"])
def test_a_step_cannot_add_what_the_caller_may_not_read(
    port: Installation, names: tuple[str, ...]
) -> None:
    whole = everything(port)
    verified = whole.confirmed

    def added(state: SearchProgress) -> SearchProgress:
        return replace(
            state,
            rankings=[*state.rankings, *verified.rankings],
            verified=verified,
            order=whole.order,
            passages=whole.passages,
            cosines=whole.cosines,
            hits=whole.hits,
        )

    answer = answered(port, names, added)
    assert folders(answer.hits) == {PUBLIC}
    assert len(answer.hits) == 3


def test_a_candidate_under_the_name_of_a_readable_document_is_not_read(port: Installation) -> None:
    whole = everything(port).confirmed.by_id.values()
    readable = next(c for c in whole if c.uri.startswith(PUBLIC))

    def borrowed(state: SearchProgress) -> SearchProgress:
        """Combine closed entries with the version of an open document."""
        taken: list[Candidate] = [
            replace(readable, id=c.id, text_key=c.text_key)
            for c in whole
            if c.uri.startswith("board")
        ]
        return replace(state, rankings=[Ranking("other", taken)])

    for caller in (Caller(), ADMIN):
        request = EVERYBODY.model_copy(update={"caller": caller})
        assert answered(port, BEFORE, borrowed, request).hits == ()


def test_a_step_cannot_change_the_fields_of_an_entry(port: Installation) -> None:
    def rewritten(state: SearchProgress) -> SearchProgress:
        passages = [
            replace(passage, fields={**passage.fields, "text": "forged"}, also=("board/0.md",))
            for passage in state.passages
        ]
        return replace(state, passages=passages)

    answer = answered(port, AFTER, rewritten)
    assert len(answer.hits) == 3
    assert "forged" not in repr(answer.hits)
    assert folders(answer.hits) == {PUBLIC}


@pytest.mark.parametrize("names", [BETWEEN, AFTER], ids=["between", "after"])
def test_what_is_revoked_while_a_step_works_is_in_no_answer(
    port: Installation, names: tuple[str, ...]
) -> None:
    catalog = port.session().catalog
    ref = catalog.tenants.get("tidal").ref
    catalog.access.grant(ref, "board", ["grace"])

    def slow(state: SearchProgress) -> SearchProgress:
        catalog.access.revoke(ref, "board", ["grace"])
        return replace(state, cosines=dict(state.cosines))

    request = EVERYBODY.model_copy(update={"caller": Caller(principals=("grace",))})
    assert folders(answered(port, names, lambda state: state, request).hits) == {PUBLIC, "board"}
    answer = answered(port, names, slow, request)
    assert folders(answer.hits) == {PUBLIC}


class NoSecondPages(FlatScopes):
    """A policy that closes all documents with a 1 in their name, whatever is granted."""

    def permits(self, caller: Caller, document: ScopedDocument) -> bool:
        return "1" not in document.uri


def test_a_policy_narrows_searches_lists_and_documents(port: Installation) -> None:
    policy = NoSecondPages()
    with retrieving(port, AFTER, lambda state: state, policy) as retriever:
        request = EVERYBODY.model_copy(update={"caller": ADMIN})
        found = {hit.uri for hit in retriever.search("tidal", request).hits}
    assert found == {f"{scope}/{n}.md" for scope in (PUBLIC, "board") for n in (0, 2)}
    session = port.session()
    plain = DocumentReader(session.catalog, session.store)
    narrowed = DocumentReader(session.catalog, session.store, policy)
    everybody = plain.list("tidal", ADMIN, limit=10)
    assert len(everybody) == 6
    assert {d.uri for d in narrowed.list("tidal", ADMIN, limit=10)} == found
    # A page is filled, however many closed documents are in between.
    assert [d.uri for d in narrowed.list("tidal", ADMIN, limit=2)] == ["board/0.md", "board/2.md"]
    for document in everybody:
        if "1" in document.uri:
            with pytest.raises(Exception, match="no such document"):
                narrowed.read("tidal", ADMIN, document.document_id)
        else:
            assert narrowed.read("tidal", ADMIN, document.document_id).uri == document.uri


class Nobody(FlatScopes):
    """A policy that filters searches by the public scope alone."""

    def principals(self, caller: Caller) -> tuple[str, ...]:
        return ()


def test_a_policy_decides_whose_grants_count(port: Installation) -> None:
    with retrieving(port, AFTER, lambda state: state, Nobody()) as retriever:
        request = EVERYBODY.model_copy(update={"caller": ADMIN})
        assert folders(retriever.search("tidal", request).hits) == {PUBLIC}
