"""Conformance of vector stores: the adapters for memory and Elasticsearch pass the same tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pytest

from rag_assets.common.errors import IndexInconsistent, TenantLocked
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.storage.index.model import (
    Candidate,
    Entry,
    EntryDocument,
    EntryFilter,
    IndexRef,
    IndexSpec,
    Owner,
    RankingRequest,
    entry_id,
)
from rag_assets.storage.index.protocols import EntrySearcher
from rag_assets.storage.index.store import StoreConfig, VectorStore, open_store

T = TypeVar("T")
SPEC = IndexSpec(dimensions=4)
MADE = datetime(2026, 11, 21, 14, 35, 0, 123_000, UTC)
KEY = b"k" * 32


def holds_lock() -> None:
    """A guard that passes: the writer holds its lock."""


def lost_lock() -> None:
    """A guard that fails."""
    raise TenantLocked("the lock was lost")


def unit(*values: float) -> npt.NDArray[np.float32]:
    vector = np.array(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def owner_of(tenant: str, generation: int = 1, *, incarnation: int = 1) -> Owner:
    return Owner(tenant, incarnation, generation, KEY)


def entry(
    owner: Owner,
    name: str,
    text: str = "Nothing in particular.",
    *,
    version: str = "v1",
    ordinal: int = 0,
    vector: npt.NDArray[np.float32] | None = None,
    **document: Any,
) -> Entry:
    facts: dict[str, Any] = {
        "document_id": name,
        "indexed_key": version,
        "source": "files",
        "source_type": "file",
        "path": f"{name}.md",
        "uri": f"files/{name}.md",
        "media_type": "text/markdown",
        "title": None,
        "access_scope": "public",
        "modified_at": MADE,
    }
    chunk = Chunk(
        ordinal=ordinal,
        text=text,
        text_sha256=f"{name}-{ordinal}",
        start=0,
        end=len(text),
        byte_start=0,
        token_count=3,
        heading_path=(),
    )
    return Entry(
        owner,
        EntryDocument(**{**facts, **document}),
        chunk,
        unit(1, 0, 0, 0) if vector is None else vector,
    )


@dataclass(frozen=True)
class Opened:
    """A store with one shared index."""

    store: VectorStore
    index: IndexRef

    @property
    def name(self) -> str:
        return self.index.name

    def write(self, *entries: Entry) -> int:
        return self.store.entries.write(self.name, entries)

    def uris(self, owner: Owner) -> list[str]:
        return sorted(e.fields["uri"] for e in self.store.entries.stored(self.name, owner))

    def ask(self, question: Callable[[EntrySearcher], Awaitable[T]]) -> T:
        async def run() -> T:
            searcher = self.store.searcher()
            try:
                return await question(searcher)
            finally:
                await searcher.close()

        return asyncio.run(run())

    def ranking(
        self, owner: Owner, by: npt.NDArray[np.float32] | str, limit: int = 10, **wanted: Any
    ) -> list[Candidate]:
        request = RankingRequest(by, limit, EntryFilter(**wanted))
        [found] = self.ask(lambda searcher: searcher.rankings(self.name, owner, [request]))
        return found

    def found(self, owner: Owner, **wanted: Any) -> list[str]:
        ranking = self.ranking(owner, unit(1, 0, 0, 0), **wanted)
        return sorted(candidate.document_id for candidate in ranking)


@pytest.fixture(params=["memory", "elasticsearch"], scope="module")
def config(request: pytest.FixtureRequest) -> StoreConfig:
    in_memory = request.param == "memory"
    url = "memory:" if in_memory else request.getfixturevalue("elasticsearch_url")
    return StoreConfig(url, prefix=f"conform{uuid4().hex[:8]}")


@pytest.fixture(scope="module")
def module_store(config: StoreConfig) -> Iterator[VectorStore]:
    store = open_store(config)
    yield store
    for name in store.indexes.names():
        store.indexes.drop(name)
    store.close()


@pytest.fixture
def opened(module_store: VectorStore) -> Opened:
    return Opened(module_store, module_store.indexes.place(SPEC, "any", "shared"))


@pytest.fixture
def tenant() -> str:
    return f"t{uuid4().hex[:12]}"


@pytest.fixture
def owner(tenant: str) -> Owner:
    return owner_of(tenant)


# -- entries


def test_an_entry_is_found_and_read_as_written(opened: Opened, owner: Owner) -> None:
    written = entry(owner, "pump", "Prime the pump.", title="Pumps", tags=("b", "a"))
    assert opened.write(written) == 1
    [stored] = opened.store.entries.stored(opened.name, owner)
    assert (stored.id, stored.index_key, stored.intact) == (written.id, "v1", True)
    assert stored.fields["text"] == "Prime the pump."
    assert stored.fields["title"] == "Pumps"
    assert stored.fields["tags"] == ["b", "a"]
    assert opened.found(owner) == ["pump"]
    assert opened.store.entries.count(opened.name, owner) == 1
    assert list(opened.store.entries.without_vector(opened.name, owner)) == []


def test_writing_an_entry_again_replaces_it(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump", "Prime the pump."))
    opened.write(entry(owner, "pump", "Drain the pump."))
    [stored] = opened.store.entries.stored(opened.name, owner)
    assert stored.fields["text"] == "Drain the pump."


def test_a_deleted_entry_is_not_found(opened: Opened, owner: Owner) -> None:
    first, second = entry(owner, "first"), entry(owner, "second")
    opened.write(first, second)
    assert opened.store.entries.delete(opened.name, owner.tenant, [first.id, "absent"]) == 2
    assert opened.found(owner) == ["second"]
    assert opened.store.entries.count(opened.name, owner) == 1


def test_only_other_versions_are_deleted(opened: Opened, owner: Owner) -> None:
    neighbour = owner_of(owner.tenant, generation=2)
    opened.write(
        *(entry(owner, "changed", version=version) for version in ("v1", "v2")),
        entry(owner, "removed"),
        entry(owner, "other"),
        entry(neighbour, "changed"),
    )
    kept = {"changed": "v2", "removed": None, "absent": None}
    entries = opened.store.entries
    assert entries.delete_other_versions(opened.name, owner, kept, guard=holds_lock) == 2
    left = {(e.fields["document_id"], e.index_key) for e in entries.stored(opened.name, owner)}
    assert left == {("changed", "v2"), ("other", "v1")}
    assert opened.uris(neighbour) == ["files/changed.md"]
    assert opened.found(owner) == ["changed", "other"]


def test_a_writer_without_its_lock_changes_nothing(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump"))
    entries = opened.store.entries
    with pytest.raises(TenantLocked):
        entries.delete_other_versions(opened.name, owner, {"pump": None}, guard=lost_lock)
    with pytest.raises(TenantLocked):
        entries.set_scopes(opened.name, owner, {"pump": "crew"}, guard=lost_lock)
    [stored] = entries.stored(opened.name, owner)
    assert stored.fields["access_scope"] == "public"


def test_a_new_scope_applies_at_once_and_entries_stay_intact(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump"), entry(owner, "valve"), entry(owner, "map"))
    scopes = {"pump": "crew", "valve": "public"}
    entries = opened.store.entries
    assert entries.set_scopes(opened.name, owner, scopes, guard=holds_lock) == 1
    assert opened.found(owner, scopes=frozenset({"crew"})) == ["pump"]
    assert opened.found(owner, scopes=frozenset({"public"})) == ["map", "valve"]
    assert all(stored.intact for stored in entries.stored(opened.name, owner))
    assert entries.set_scopes(opened.name, owner, scopes, guard=holds_lock) == 0


def test_entries_of_one_document_are_read(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump", ordinal=0), entry(owner, "pump", ordinal=1))
    opened.write(entry(owner, "valve"), entry(owner_of("elsewhere"), "pump"))
    found = opened.store.entries.of_document(opened.name, owner, "pump")
    assert sorted(stored.fields["ordinal"] for stored in found) == [0, 1]
    assert opened.store.entries.of_document(opened.name, owner, "absent") == []


def test_a_scan_finds_all_generations_and_incarnations_of_one_tenant(
    opened: Opened, owner: Owner
) -> None:
    later = owner_of(owner.tenant, generation=2)
    former = owner_of(owner.tenant, incarnation=9)
    mine = [entry(whose, "pump") for whose in (owner, later, former)]
    opened.write(*mine, entry(owner_of(f"{owner.tenant}-other"), "pump"))
    scanned = list(opened.store.entries.scan(opened.name, owner.tenant, KEY))
    assert sorted(found.id for found in scanned) == sorted(written.id for written in mine)
    assert all(found.intact and found.correctly_routed for found in scanned)
    assert {(found.incarnation, found.generation) for found in scanned} == {(1, 1), (1, 2), (9, 1)}
    for found in opened.store.entries.scan(opened.name, owner.tenant, b"x" * 32):
        assert not found.intact


def test_a_missing_index_reads_as_empty_and_cannot_be_searched(
    opened: Opened, owner: Owner
) -> None:
    entries, gone = opened.store.entries, f"{opened.name}-gone"
    assert list(entries.scan(gone, owner.tenant)) == []
    assert list(entries.stored(gone, owner)) == []
    assert list(entries.without_vector(gone, owner)) == []
    assert entries.of_document(gone, owner, "pump") == []
    assert entries.count(gone, owner) == 0
    assert entries.delete_other_versions(gone, owner, {"pump": None}, guard=holds_lock) == 0
    assert entries.set_scopes(gone, owner, {"pump": "crew"}, guard=holds_lock) == 0
    with pytest.raises(IndexInconsistent):
        opened.ask(lambda s: s.rankings(gone, owner, [RankingRequest("pump", 3)]))


# -- searching


def test_vectors_rank_by_their_exact_cosine(opened: Opened, owner: Owner) -> None:
    vectors = {
        "same": unit(1, 0, 0, 0),
        "near": unit(1, 1, 0, 0),
        "far": unit(0, 1, 0, 0),
        "opposite": unit(-1, 0, 0, 0),
    }
    opened.write(*(entry(owner, name, vector=vector) for name, vector in vectors.items()))
    ranking = opened.ranking(owner, unit(1, 0, 0, 0))
    assert [found.document_id for found in ranking] == ["same", "near", "far", "opposite"]
    assert [found.score for found in ranking] == pytest.approx([1, 2**-0.5, 0, -1], abs=0.02)
    assert [f.id for f in opened.ranking(owner, unit(1, 0, 0, 0), limit=2)] == [
        found.id for found in ranking[:2]
    ]


def test_ties_are_broken_by_id(opened: Opened, owner: Owner) -> None:
    opened.write(*(entry(owner, f"same-{number}") for number in range(5)))
    for by in (unit(1, 0, 0, 0), "particular"):
        ids = [found.id for found in opened.ranking(owner, by)]
        assert len(ids) == 5
        assert ids == sorted(ids)


def test_words_rank_by_their_number_and_frequency(opened: Opened, owner: Owner) -> None:
    texts = {
        "both": "The valve of the sluice turns once a year and nobody knows why.",
        "twice": "The valve is a valve, and it turns.",
        "once": "The valve turns once a year and nobody knows why it does so.",
        "none": "A boat is painted in spring.",
    }
    opened.write(*(entry(owner, name, text) for name, text in texts.items()))
    best, *others = (found.document_id for found in opened.ranking(owner, "valve"))
    assert (best, set(others)) == ("twice", {"both", "once"})
    assert opened.ranking(owner, "sluice valve")[0].document_id == "both"
    assert opened.ranking(owner, "locomotive") == []
    assert all(found.score > 0 for found in opened.ranking(owner, "valve"))


@pytest.mark.parametrize("query", ["http error", "handleHTTPError", "handling errors"])
def test_identifiers_are_found_by_their_parts_and_stems(
    opened: Opened, owner: Owner, query: str
) -> None:
    opened.write(
        entry(owner, "code", "Call handleHTTPError before retrying."),
        entry(owner, "other", "Paint the boat in spring."),
    )
    assert [found.document_id for found in opened.ranking(owner, query)] == ["code"]


def test_a_title_is_searched_too(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump", title="Sluices and weirs"), entry(owner, "valve"))
    assert [found.document_id for found in opened.ranking(owner, "weirs")] == ["pump"]


def test_several_rankings_take_one_round_trip(opened: Opened, owner: Owner) -> None:
    opened.write(
        entry(owner, "pump", "Prime the pump.", vector=unit(0, 1, 0, 0)), entry(owner, "valve")
    )
    requests = [RankingRequest(unit(1, 0, 0, 0), 1), RankingRequest("pump", 5)]
    near, worded = opened.ask(lambda s: s.rankings(opened.name, owner, requests))
    assert [found.document_id for found in near] == ["valve"]
    assert [found.document_id for found in worded] == ["pump"]
    assert worded[0].uri == "files/pump.md"
    assert worded[0].id == entry_id(owner, "pump", "v1", 0)


def test_equal_texts_have_equal_keys(opened: Opened, owner: Owner) -> None:
    opened.write(
        entry(owner, "a", "Same.", title="A"),
        entry(owner, "b", "Same.", title="B"),
        entry(owner, "c", "Other."),
    )
    keys = {f.document_id: f.text_key for f in opened.ranking(owner, unit(1, 0, 0, 0))}
    assert keys["a"] == keys["b"] != keys["c"]


LATER = MADE + timedelta(days=1)
FILTERS: list[tuple[Mapping[str, Any], list[str]]] = [
    ({}, ["guide", "note", "page"]),
    ({"scopes": frozenset({"crew"})}, ["note"]),
    ({"scopes": frozenset({"crew", "public"})}, ["guide", "note", "page"]),
    ({"scopes": frozenset()}, []),
    ({"source_types": ("upload",)}, ["page"]),
    ({"sources": ("files",)}, ["guide", "note"]),
    ({"documents": ("guide", "absent")}, ["guide"]),
    ({"paths": ("files/docs",)}, ["guide"]),
    ({"paths": ("files/docs/",)}, ["guide"]),
    ({"paths": ("files/note.md", "files/doc")}, ["note"]),
    ({"languages": ("de",)}, ["page"]),
    ({"modified_after": LATER}, ["page"]),
    ({"modified_before": LATER}, ["guide", "note"]),
    ({"modified_after": MADE, "modified_before": LATER}, ["guide", "note"]),
    ({"tags": ("red",)}, ["guide", "page"]),
    ({"tags": ("red", "round")}, ["page"]),
    ({"metadata": {"team": "north"}}, ["guide"]),
    ({"metadata": {"draft": "true"}}, ["note"]),
    ({"metadata": {"team": "north", "draft": "true"}}, []),
    ({"tags": ("red",), "languages": ("de",), "sources": ("web",)}, ["page"]),
]


@pytest.fixture(scope="module")
def filtered(module_store: VectorStore) -> tuple[Opened, Owner]:
    opened = Opened(module_store, module_store.indexes.place(SPEC, "any", "shared"))
    owner = owner_of(f"filtered{uuid4().hex[:8]}")
    opened.write(
        entry(owner, "guide", uri="files/docs/guide.md", tags=("red",), metadata={"team": "north"}),
        entry(owner, "note", access_scope="crew", metadata={"draft": True}),
        entry(
            owner,
            "page",
            uri="web/page",
            source="web",
            source_type="upload",
            language="de",
            modified_at=LATER,
            tags=("red", "round"),
        ),
    )
    return opened, owner


@pytest.mark.parametrize(("wanted", "expected"), FILTERS)
def test_filters_apply_to_both_kinds_of_search(
    filtered: tuple[Opened, Owner], wanted: Mapping[str, Any], expected: list[str]
) -> None:
    opened, owner = filtered
    assert opened.found(owner, **wanted) == expected
    worded = opened.ranking(owner, "particular", **wanted)
    assert sorted(found.document_id for found in worded) == expected


def test_entries_of_another_tenant_incarnation_or_generation_are_not_found(
    opened: Opened, owner: Owner
) -> None:
    others = [
        owner_of(f"{owner.tenant}-other"),
        replace(owner, incarnation=2),
        replace(owner, generation=2),
    ]
    opened.write(entry(owner, "mine"), *(entry(other, "theirs") for other in others))
    vector = unit(1, 0, 0, 0)
    assert opened.found(owner) == ["mine"]
    assert [f.document_id for f in opened.ranking(owner, "particular")] == ["mine"]
    assert opened.uris(owner) == ["files/mine.md"]
    for other in others:
        [theirs] = [e.id for e in opened.store.entries.stored(opened.name, other)]
        assert opened.found(other) == ["theirs"]
        assert opened.ask(lambda s, id_=theirs: s.cosines(opened.name, owner, vector, [id_])) == {}
        read = opened.ask(
            lambda s, id_=theirs: s.entries(opened.name, owner, [id_], ["public"], vector)
        )
        assert read == {}


def test_entries_are_read_with_their_cosines_only_within_scopes(
    opened: Opened, owner: Owner
) -> None:
    public = entry(owner, "open", vector=unit(1, 1, 0, 0))
    secret = entry(owner, "secret", access_scope="crew")
    opened.write(public, secret)
    ids, vector = [public.id, secret.id, "absent"], unit(1, 0, 0, 0)
    read = opened.ask(lambda s: s.entries(opened.name, owner, ids, ["public"], vector))
    assert set(read) == {public.id}
    assert read[public.id].intact
    assert read[public.id].cosine == pytest.approx(2**-0.5, abs=0.02)
    unscored = opened.ask(lambda s: s.entries(opened.name, owner, ids, ["public", "crew"]))
    assert {id_: one.cosine for id_, one in unscored.items()} == {public.id: None, secret.id: None}
    cosines = opened.ask(lambda s: s.cosines(opened.name, owner, vector, ids))
    assert cosines == pytest.approx({public.id: 2**-0.5, secret.id: 1.0}, abs=0.02)
    assert opened.ask(lambda s: s.entries(opened.name, owner, [], ["public"])) == {}
    assert opened.ask(lambda s: s.cosines(opened.name, owner, vector, [])) == {}


def test_an_entry_with_the_digest_of_another_key_is_not_intact(
    opened: Opened, owner: Owner
) -> None:
    written = entry(owner, "pump")
    opened.write(written)
    stranger = replace(owner, digest_key=b"x" * 32)
    read = opened.ask(lambda s: s.entries(opened.name, stranger, [written.id], ["public"]))
    assert not read[written.id].intact


# -- administration


def test_generations_of_equal_spec_share_an_index(opened: Opened, tenant: str) -> None:
    indexes = opened.store.indexes
    assert indexes.place(SPEC, tenant, "shared") == opened.index
    other = indexes.place(replace(SPEC, dimensions=8), tenant, "shared")
    assert other.name != opened.name
    assert {other.name, opened.name} <= set(indexes.names())
    assert (indexes.vector_length(opened.name), indexes.vector_length(other.name)) == (4, 8)
    assert indexes.vector_length("absent") is None


def test_a_full_shared_index_is_followed_by_another(config: StoreConfig) -> None:
    store = open_store(replace(config, prefix=f"{config.prefix}full", shared_limit=1))
    try:
        first = store.indexes.place(SPEC, "a", "shared")
        store.entries.write(first.name, [entry(owner_of("a"), "pump")])
        second = store.indexes.place(SPEC, "b", "shared")
        assert second.name != first.name
        assert store.indexes.names() == sorted([first.name, second.name])
    finally:
        for name in store.indexes.names():
            store.indexes.drop(name)
        store.close()


def test_a_dedicated_index_belongs_to_its_tenant(opened: Opened, tenant: str) -> None:
    indexes = opened.store.indexes
    own = indexes.place(SPEC, tenant, "dedicated")
    assert indexes.dedicated(tenant) == [own.name]
    assert indexes.dedicated(tenant[1:]) == []
    assert indexes.place(SPEC, tenant, "dedicated") == own
    indexes.drop(own.name)
    indexes.drop(own.name)
    assert indexes.dedicated(tenant) == []


def test_a_recreated_index_has_another_identity(opened: Opened, tenant: str) -> None:
    indexes = opened.store.indexes
    made = indexes.place(SPEC, tenant, "dedicated")
    assert indexes.presence(made) == "present"
    assert opened.ask(lambda s: s.presence(made)) == "present"
    indexes.drop(made.name)
    assert indexes.presence(made) == "missing"
    assert opened.ask(lambda s: s.presence(made)) == "missing"
    again = indexes.place(SPEC, tenant, "dedicated")
    assert again.name == made.name
    assert indexes.presence(made) == "replaced"
    assert opened.ask(lambda s: s.presence(made)) == "replaced"
    assert indexes.presence(again) == "present"
    indexes.drop(made.name)


def test_owners_lists_tenants_and_incarnations(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump"), entry(replace(owner, incarnation=2), "pump"))
    owners = [
        found for found in opened.store.indexes.owners(opened.name) if found[0] == owner.tenant
    ]
    assert owners == [(owner.tenant, 1), (owner.tenant, 2)]


def test_a_view_shows_exactly_one_generation(opened: Opened, owner: Owner) -> None:
    indexes, later = opened.store.indexes, replace(owner, generation=2)
    opened.write(entry(owner, "pump"), entry(later, "pump"))
    assert indexes.view(owner.tenant) is None
    assert not indexes.is_published(opened.name, owner)
    indexes.publish(opened.name, owner)
    assert indexes.is_published(opened.name, owner)
    indexes.publish(opened.name, later)
    assert indexes.is_published(opened.name, later)
    assert not indexes.is_published(opened.name, owner)
    shown = indexes.view(owner.tenant)
    assert shown is not None
    assert (shown.name, shown.restricted) == (indexes.view_name(owner.tenant), True)
    assert shown.tenants == (owner.tenant,)
    indexes.withdraw(owner.tenant)
    indexes.withdraw(owner.tenant)
    assert indexes.view(owner.tenant) is None
