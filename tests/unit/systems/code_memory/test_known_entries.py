"""Entries cached for walks: read once in a state, and again when the index differs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from rag_assets.search.services import EntryCache
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import Candidate, Owner, Place, Places, RankingRequest
from rag_assets.systems.code_memory.catalog.relation_rows import RelationState

OWNER = Owner("a", 1, 1)
STATE = RelationState("1", "1")
D, E = "document-d", "document-e"


def entry(document_id: str, ordinal: int, symbol: str = "", key: str = "k") -> Candidate:
    id_ = f"{document_id}/{key}/{ordinal}"
    return Candidate(id_, document_id, key, 1.0, document_id, id_, ordinal, symbol=symbol)


class Index:
    """Entries by position, as an index returns them (see EntrySearcher)."""

    def __init__(self, *entries: Candidate) -> None:
        self.entries = list(entries)
        self.asked: list[list[str]] = []

    async def rankings(
        self, index_name: str, owner: Owner, requests: Sequence[RankingRequest]
    ) -> list[list[Candidate]]:
        [request] = requests
        assert isinstance(request.by, Places)
        wanted = [place.document_id for place in request.by.of]
        self.asked.append(wanted)
        return [[one for one in self.entries if one.document_id in wanted][: request.limit]]


def find_ids(
    known: EntryCache, *places: Place, state: RelationState = STATE, owner: Owner = OWNER
) -> list[str] | None:
    found = asyncio.run(known.find_at("index", owner, state, places))
    return None if found is None else [one.id for one in found]


def test_entries_come_in_the_order_of_their_places_and_each_once() -> None:
    index = Index(entry(D, 0), entry(D, 1, "Pump"), entry(E, 0, "Valve"))
    known = EntryCache(index)  # type: ignore[arg-type]
    places = Place(E, "Valve"), Place(D, "Pump"), Place(D), Place("gone")
    assert find_ids(known, *places) == [f"{E}/k/0", f"{D}/k/1", f"{D}/k/0"]
    assert find_ids(known, Place(D, "Valve"), Place(D, "")) == []


def test_a_document_is_read_once_in_a_state() -> None:
    index = Index(entry(D, 0), entry(E, 0))
    known = EntryCache(index)  # type: ignore[arg-type]
    for _ in range(2):
        find_ids(known, Place(D), Place("gone"))
    assert index.asked == [[D, "gone"]]
    find_ids(known, Place(D), Place(E))
    assert index.asked[1:] == [[E]]
    index.entries = [entry(D, 0, key="new")]
    assert find_ids(known, Place(D)) == [f"{D}/k/0"]
    assert find_ids(known, Place(D), state=RelationState("2", "1")) == [f"{D}/new/0"]
    assert find_ids(known, Place(D), owner=Owner("a", 2, 1)) == [f"{D}/new/0"]


def version(indexed_key: str) -> ReadableVersion:
    return ReadableVersion(indexed_key, "uri", "public", None, False)


def test_former_versions_are_read_anew() -> None:
    index = Index(entry(D, 0), entry(E, 0))
    known = EntryCache(index)  # type: ignore[arg-type]
    find_ids(known, Place(D), Place(E), Place("gone"))
    index.entries = [entry(D, 0, key="new"), entry(E, 0)]
    now = {D: version("new"), E: version("k"), "gone": version("k"), "never met": version("k")}
    assert known.forget_former("another", OWNER, now) == frozenset()
    assert known.forget_former("index", OWNER, now) == {D}
    assert known.forget_former("index", OWNER, now) == frozenset()
    assert find_ids(known, Place(D), Place(E)) == [f"{D}/new/0", f"{E}/k/0"]
    assert index.asked == [[D, E, "gone"], [D]]


def test_everything_is_read_anew_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(entry(D, 0))
    known = EntryCache(index)  # type: ignore[arg-type]
    assert find_ids(known, Place(D), Place(E)) == [f"{D}/k/0"]
    index.entries.append(entry(E, 0))
    assert find_ids(known, Place(E)) == []
    later = time.monotonic() + 61
    monkeypatch.setattr("time.monotonic", lambda: later)
    assert find_ids(known, Place(E)) == [f"{E}/k/0"]


def test_documents_with_too_many_entries_are_not_kept() -> None:
    index = Index(entry(E, 0), *(entry(D, number) for number in range(2_000)))
    known = EntryCache(index)  # type: ignore[arg-type]
    assert find_ids(known, Place(E), Place(D)) is None
    index.asked.clear()
    assert find_ids(known, Place(E)) == [f"{E}/k/0"]
    assert index.asked == [], "what was read whole before it is kept"
    assert find_ids(known, Place(D)) is None


def test_optional_documents_take_no_room_from_those_of_a_walk() -> None:
    large = (entry(D, number) for number in range(2_000))
    index = Index(entry(E, 0), entry("small", 0), *large)
    known = EntryCache(index)  # type: ignore[arg-type]

    def find_ids_with_optional(*optional_nodes: str) -> list[str] | None:
        found = asyncio.run(known.find_at("index", OWNER, STATE, [Place(E)], optional_nodes))
        return None if found is None else [one.id for one in found]

    assert find_ids_with_optional("small", D, E) == [f"{E}/k/0"]
    assert index.asked == [[E, "small", D]]
    assert find_ids(known, Place("small")) == ["small/k/0"]
    assert find_ids_with_optional(D) == [f"{E}/k/0"], "nothing is read for what is beside alone"
    assert index.asked == [[E, "small", D]]


def test_the_cache_of_entries_is_bounded() -> None:
    index = Index(*(entry(f"document-{n}", o) for n in range(9) for o in range(3)))
    known = EntryCache(index, max_entries=12)  # type: ignore[arg-type]
    for number in range(9):
        assert find_ids(known, Place(f"document-{number}")) is not None
    index.asked.clear()
    find_ids(known, Place("document-8"))
    assert index.asked == []
    find_ids(known, Place("document-0"))
    assert index.asked == [["document-0"]]
    for number in (1, 2, 3):
        find_ids(known, Place(f"document-{number}"), owner=Owner("b", 1, 1))
    index.asked.clear()
    find_ids(known, Place("document-0"))
    assert index.asked == [["document-0"]], "the tenant that was asked longest ago is forgotten"
