"""What is asked of Elasticsearch for a question: places first, texts of what is shown second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pytest
from elasticsearch import Elasticsearch

from rag_assets.indexing.elasticsearch import ElasticsearchStore
from rag_assets.indexing.model import Owner, Wanted
from rag_assets.indexing.searcher import ElasticsearchSearcher
from tests.driving import Driver
from tests.installation import FAST, Installation

T = TypeVar("T")
TENANT = "searcher"
SAME = "Every valve is turned twice before the pump is started."
OTHER = "A valve of another kind."
DIMENSIONS = 384


@dataclass(frozen=True, slots=True)
class Built:
    """A build, and Elasticsearch below it."""

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
    assert isinstance(ctx.store, ElasticsearchStore)
    return Built(ctx.store._url, serving.index_name, ctx.owner(serving.number))


@pytest.fixture
def former(built: Built) -> Iterator[Built]:
    """The same build as the schema before had it: without the key of equal texts."""
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
    [found] = built.asked(lambda s: s.rankings(built.index_name, built.owner, [Wanted("valve", 9)]))
    keys = {candidate.uri: candidate.text_key for candidate in found}
    assert keys["files/one.md"] == keys["files/two.md"] != keys["files/three.md"]


def test_an_entry_is_read_by_the_id_that_its_place_makes_with_the_cosine_it_was_found_by(
    built: Built,
) -> None:
    wanted = [Wanted(vector(), 9), Wanted("valve", 9)]
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
    [found] = built.asked(lambda s: s.rankings(built.index_name, built.owner, [Wanted("valve", 9)]))
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
    wanted = [Wanted(vector(), 9), Wanted("valve", 9)]
    near, worded = former.asked(lambda s: s.rankings(former.index_name, former.owner, wanted))
    assert len(near) == len(worded) == 3
    # Titles are part of the key that there was.
    assert len({candidate.text_key for candidate in worded}) == 3
    assert len(former.asked(_reading(former, [c.id for c in near], vector()))) == 3


def _reading(
    built: Built, ids: list[str], near: np.ndarray | None
) -> Callable[[ElasticsearchSearcher], Awaitable[dict[str, object]]]:
    return lambda s: s.entries(built.index_name, built.owner, ids, {"public"}, near)
