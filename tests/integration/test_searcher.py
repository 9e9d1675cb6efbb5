"""The requests of a search to Elasticsearch: first candidates, then the texts of the hits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pytest
from anyio import to_thread
from elasticsearch import Elasticsearch

from rag_assets.pipeline.listing import list_documents
from rag_assets.search import Retriever, plan
from rag_assets.search.model import SearchRequest
from rag_assets.storage.index.elasticsearch.store import ElasticsearchSearcher
from rag_assets.storage.index.model import Owner, RankingRequest
from rag_assets.tenants.modes import SearchMode
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.rules import shared_scanner

T = TypeVar("T")
TENANT = "searcher"
SAME = "Every valve is turned twice before the pump is started."
OTHER = "A valve of another kind."
DIMENSIONS = 384


@dataclass(frozen=True, slots=True)
class Built:
    """A build, and its Elasticsearch."""

    url: str
    index_name: str
    owner: Owner

    def asked(self, ask: Callable[[ElasticsearchSearcher], Awaitable[T]]) -> T:
        async def run() -> T:
            searcher = ElasticsearchSearcher(self.url)
            try:
                return await ask(searcher)
            finally:
                await searcher.close()

        return asyncio.run(run())


def get_url(installation: Installation) -> str:
    return installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]


@pytest.fixture(scope="module")
def built(shared_installation: Installation, driver: Driver) -> Built:
    folder = shared_installation.add_tenant(TENANT, **FAST)
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text(f"---\ntitle: Of {name}\n---\n\n{SAME}\n")
    (folder / "three.md").write_text(f"---\ntitle: Of three\n---\n\n{OTHER}\n")
    driver.sync(TENANT)
    ctx = shared_installation.context(TENANT)
    serving = ctx.catalog.generations.serving(TENANT)
    assert serving is not None
    return Built(get_url(shared_installation), serving.index_name, ctx.owner(serving))


@pytest.fixture
def former(built: Built) -> Iterator[Built]:
    """Create the same build in the former schema, without the key of equal texts."""
    name = f"{built.index_name}-former"
    with Elasticsearch(built.url) as client:
        [found] = client.indices.get(index=built.index_name).values()
        properties = dict(found["mappings"]["properties"])
        del properties["text_key"]
        client.indices.create(
            index=name,
            mappings={**found["mappings"], "properties": properties},
            settings={"analysis": found["settings"]["index"]["analysis"]},
        )
        hits = client.search(
            index=built.index_name,
            query={"term": {"tenant": TENANT}},
            source={"excludes": ["text_key"], "exclude_vectors": False},
        )["hits"]["hits"]
        assert len(hits) == 3
        for hit in hits:
            assert hit["_source"].keys() >= {"text_sha256", "vector"}
            client.index(index=name, id=hit["_id"], routing=TENANT, document=hit["_source"])
        client.indices.refresh(index=name)
        yield Built(built.url, name, built.owner)
        client.indices.delete(index=name)


def vector() -> np.ndarray:
    drawn = np.random.default_rng(7).standard_normal(DIMENSIONS).astype(np.float32)
    return drawn / np.linalg.norm(drawn)


def test_equal_texts_have_equal_keys_whatever_stands_above_them(built: Built) -> None:
    [found] = built.asked(
        lambda s: s.rankings(built.index_name, built.owner, [RankingRequest("valve", 9)])
    )
    keys = {candidate.uri: candidate.text_key for candidate in found}
    assert keys["files/one.md"] == keys["files/two.md"] != keys["files/three.md"]


def test_an_entry_is_read_by_the_id_that_its_place_makes_with_the_cosine_it_was_found_by(
    built: Built,
) -> None:
    wanted = [RankingRequest(vector(), 9), RankingRequest("valve", 9)]
    near, worded = built.asked(lambda s: s.rankings(built.index_name, built.owner, wanted))
    ids = [candidate.id for candidate in near]
    assert sorted(ids) == sorted(candidate.id for candidate in worded)
    read = built.asked(
        lambda s: s.entries(built.index_name, built.owner, ids, {"public"}, vector())
    )
    assert [read[candidate.id].cosine for candidate in near] == pytest.approx(
        [candidate.score for candidate in near], abs=1e-6
    )
    assert {e.fields["uri"]: e.fields["text"] for e in read.values()}.items() >= {
        ("files/three.md", OTHER)
    }
    assert all(e.fields["uri"] == c.uri for c in near for e in [read[c.id]])


def test_nothing_is_read_that_is_of_another_scope_or_another_generation(built: Built) -> None:
    [found] = built.asked(
        lambda s: s.rankings(built.index_name, built.owner, [RankingRequest("valve", 9)])
    )
    ids = [candidate.id for candidate in found]
    other = Owner(TENANT, built.owner.incarnation, built.owner.generation + 1)
    for near in (None, vector()):
        for owner, scopes in ((built.owner, {"board"}), (built.owner, set()), (other, {"public"})):
            assert not built.asked(
                lambda s, owner=owner, scopes=scopes, near=near: s.entries(
                    built.index_name, owner, ids, scopes, near
                )
            )
        assert len(built.asked(_reading(built, ids, near))) == 3


def test_a_build_of_the_former_schema_is_searched_and_read(former: Built) -> None:
    wanted = [RankingRequest(vector(), 9), RankingRequest("valve", 9)]
    near, worded = former.asked(lambda s: s.rankings(former.index_name, former.owner, wanted))
    assert len(near) == len(worded) == 3
    # The former key included titles.
    assert len({candidate.text_key for candidate in worded}) == 3
    assert len(former.asked(_reading(former, [c.id for c in near], vector()))) == 3


def _reading(
    built: Built, ids: list[str], near: np.ndarray | None
) -> Callable[[ElasticsearchSearcher], Awaitable[dict[str, object]]]:
    return lambda s: s.entries(built.index_name, built.owner, ids, {"public"}, near)


Entries = Callable[..., Awaitable[dict[str, object]]]


def test_what_is_replaced_between_both_requests_is_found_as_it_is_now(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_installation.add_tenant("replaced", **FAST)
    (folder / "a.md").write_text("The valve is red.\n")
    driver.sync("replaced")
    read: Entries = ElasticsearchSearcher.entries
    asked: list[int] = []

    async def replacing(
        self: ElasticsearchSearcher, *given: object, **said: object
    ) -> dict[str, object]:
        if not asked:
            (folder / "a.md").write_text("The valve is green by now.\n")
            await to_thread.run_sync(driver.sync, "replaced")
        found = await read(self, *given, **said)
        asked.append(len(found))
        return found

    monkeypatch.setattr(ElasticsearchSearcher, "entries", replacing)
    hits = shared_installation.search("replaced", "valve", mode="text")
    assert [hit.text for hit in hits] == ["The valve is green by now."]
    assert asked == [0, 1]


def test_what_is_deleted_while_texts_are_read_slowly_is_not_shown(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_installation.add_tenant("slow", **FAST)
    for name in ("kept", "gone"):
        (folder / f"{name}.md").write_text(f"The valve is {name}.\n")
    driver.sync("slow")
    read: Entries = ElasticsearchSearcher.entries

    def delete() -> None:
        (folder / "gone.md").unlink()
        with driver.locked("slow") as ctx:
            list_documents(ctx, shared_scanner())

    async def slowly(
        self: ElasticsearchSearcher, *given: object, **said: object
    ) -> dict[str, object]:
        found = await read(self, *given, **said)
        assert len(found) == 2
        await to_thread.run_sync(delete)
        return found

    monkeypatch.setattr(ElasticsearchSearcher, "entries", slowly)
    monkeypatch.setattr(plan, "_VERIFIED_SECONDS", 0.0)
    hits = shared_installation.search("slow", "valve", mode="text")
    assert [hit.text for hit in hits] == ["The valve is kept."]


def test_entries_that_cannot_be_read_are_left_out_and_logged(
    shared_installation: Installation, driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    folder = shared_installation.add_tenant("damaged", **FAST)
    (folder / "whole.md").write_text("The valve is whole.\n")
    (folder / "moved.md").write_text("The valve was moved.\n")
    driver.sync("damaged")
    [whole] = [h for h in shared_installation.search("damaged", "valve") if "whole" in h.text]
    ctx = shared_installation.context("damaged")
    serving = ctx.catalog.generations.serving("damaged")
    assert serving is not None
    with Elasticsearch(get_url(shared_installation)) as client:
        [hit] = client.search(
            index=serving.index_name,
            query={"bool": {"filter": [{"term": {"uri": "files/moved.md"}}]}},
            source={"exclude_vectors": False},
            routing="damaged",
        )["hits"]["hits"]
        at = {"index": serving.index_name, "routing": "damaged", "refresh": True}
        client.index(id="elsewhere", document=hit["_source"], **at)
        client.delete(id=hit["_id"], **at)
    assert shared_installation.search("damaged", "valve") == (replace(whole, number=1),)
    assert "`rag-assets check damaged` lists their documents" in caplog.text


@pytest.mark.parametrize("mode", ["knn", "text", "hybrid"])
def test_an_event_has_the_cosine_of_the_nearest_candidate_below_the_threshold(
    shared_installation: Installation, driver: Driver, built: Built, mode: SearchMode
) -> None:
    session = driver.session
    retriever = Retriever(session.catalog, session.store, session.embedders)
    request = SearchRequest(query="valve", mode=mode, min_score=0.999)
    assert retriever.search(TENANT, request).needs_clarification
    everything = retriever.search(TENANT, SearchRequest(query="valve", mode=mode, min_score=-1.0))
    retriever.close()
    found, kept_back = session.catalog.events.latest(TENANT, kind="rag_search_completed", limit=2)
    nearest = max(hit.cosine for hit in everything.hits if hit.cosine is not None)
    assert kept_back.payload["ids"] == kept_back.payload["chosen"] == []
    assert kept_back.payload["nearest"] == found.payload["nearest"] == nearest


def test_cosines_of_a_ranking_are_not_requested_again(
    shared_installation: Installation, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: list[int] = []
    score = ElasticsearchSearcher.cosines

    async def counted(self: ElasticsearchSearcher, *given: Any) -> dict[str, float]:
        scored.append(len(given[-1]))
        return await score(self, *given)

    monkeypatch.setattr(ElasticsearchSearcher, "cosines", counted)
    near = {"must_include_paths": ["files/three.md"], "min_score": -1.0}
    assert len(shared_installation.search(TENANT, "valve", mode="knn", **near)) == 2
    assert scored == [0]
