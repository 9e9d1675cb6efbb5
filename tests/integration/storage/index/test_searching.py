"""Conformance of vector stores: searching entries (see EntrySearcher)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from benchmarks.fusion.lists import build_entries
from benchmarks.fusion.sets import load_handbook
from rag_assets.storage.index import fields
from rag_assets.storage.index.fields import build_entry_source
from rag_assets.storage.index.memory.searcher import Row, rank_rows
from rag_assets.storage.index.model import (
    MAX_PLACES,
    EntryFilter,
    MovedPages,
    Owner,
    Place,
    Places,
    RankingRequest,
    entry_id,
)
from rag_assets.storage.index.store import EntrySearcher, VectorStore
from tests.vector_stores import MADE, SPEC, Opened, entry, owner_of, unit


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


def test_candidates_tell_their_place_and_the_passages_that_hold_them(
    opened: Opened, owner: Owner
) -> None:
    block = replace(entry(owner, "page", ordinal=2), within=(0, 1))
    opened.write(entry(owner, "page"), entry(owner, "page", ordinal=1), block)
    for by in (unit(1, 0, 0, 0), "particular"):
        found = sorted((one.ordinal, one.within) for one in opened.ranking(owner, by))
        assert found == [(0, ()), (1, ()), (2, (0, 1))]


def test_ties_are_broken_by_id(opened: Opened, owner: Owner) -> None:
    opened.write(*(entry(owner, f"same-{number}") for number in range(5)))
    for by in (unit(1, 0, 0, 0), "particular"):
        ids = [found.id for found in opened.ranking(owner, by)]
        assert len(ids) == 5
        assert ids == sorted(ids)


def test_words_rank_passages_of_a_real_corpus_as_in_memory(opened: Opened, owner: Owner) -> None:
    """The rankings of benchmarks/fusion are made in memory, so they must equal a server's."""
    judged = load_handbook(Path(), codes=False)
    vector = unit(1, 0, 0, 0)
    entries = [replace(one, vector=vector) for one in build_entries(judged, owner)]
    opened.write(*entries)
    rows = [Row(one.id, owner.tenant, build_entry_source(one), vector) for one in entries]
    for question, _ in judged.questions[:20]:
        found = opened.ranking(owner, question, limit=50)
        request = RankingRequest(question, 50, EntryFilter())
        wanted = {one.id: one for one in rank_rows(rows, owner, request)}
        assert len(found) == len(wanted) > 0
        assert [one.score for one in found] == pytest.approx(
            [one.score for one in wanted.values()], rel=1e-4
        )
        same = [one for one in found if one.id in wanted]
        assert len(same) >= len(found) - 1  # the last may tie with a truncated one
        assert all(one.matched == wanted[one.id].matched for one in same)


def test_places_rank_in_their_order_and_hold_nothing_else(opened: Opened, owner: Owner) -> None:
    opened.write(
        entry(owner, "whole", ordinal=0),
        entry(owner, "whole", ordinal=1),
        entry(owner, "one", ordinal=0, symbol="App\\One::a"),
        entry(owner, "one", ordinal=1, symbol="App\\One::b"),
        entry(owner, "other"),
        entry(owner, "hidden", access_scope="board"),
    )
    places = Places(
        (
            Place("one", "App\\One::b"),
            Place("hidden"),
            Place("whole"),
            Place("nobody"),
            Place("one", "App\\One::b"),
            Place("one", "App\\One::c"),
        )
    )
    found = opened.ranking(owner, places, scopes=frozenset({"public"}))
    assert [one.document_id for one in found] == ["one", "whole", "whole"]
    assert found[0].id == entry_id(owner, "one", "v1", 1)
    without = opened.ranking(owner, places, without_source_types=("file",))
    assert without == []
    many = Places(tuple(Place(f"d{number}", f"s{number}") for number in range(MAX_PLACES)))
    assert opened.ranking(owner, many) == []


def test_candidates_tell_what_they_define_where_that_is_asked(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "one", symbol="App\\One::a"), entry(owner, "plain"))
    for by in (unit(1, 0, 0, 0), "particular", Places((Place("one"), Place("plain")))):
        told = []
        for symbols in (True, False):
            request = RankingRequest(by, 9, symbols=symbols)
            found = opened.ask(lambda s, one=request: s.rankings(opened.name, owner, [one]))[0]
            told.append({one.document_id: one.symbol for one in found})
        assert told == [{"one": "App\\One::a", "plain": ""}, {"one": "", "plain": ""}]


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


@pytest.mark.parametrize(
    ("query", "together", "apart"),
    [
        ("five working hours", "reply within five working hours", "five hours of working replies"),
        ("terms of service", "the terms of service apply", "service applies in terms of rent"),
        ("in das grüne Tor", "Er geht in das grüne Tor.", "Er geht in das Tor, das grüne."),
        ("release webhook", "releaseWebhook(build)", "webhook(build) and release"),
    ],
)
def test_adjacent_words_of_a_query_count_more_where_they_are_adjacent(
    opened: Opened, owner: Owner, query: str, together: str, apart: str
) -> None:
    # Ties are broken by the document, so the name of the better one comes last.
    opened.write(entry(owner, "z-together", together), entry(owner, "a-apart", apart))
    found = opened.ranking(owner, query)
    assert [one.document_id for one in found] == ["z-together", "a-apart"]
    assert found[0].matched == found[1].matched


@pytest.mark.parametrize("query", ["http error", "handleHTTPError", "handling errors"])
def test_identifiers_are_found_by_their_parts_and_stems(
    opened: Opened, owner: Owner, query: str
) -> None:
    opened.write(
        entry(owner, "code", "Call handleHTTPError before retrying."),
        entry(owner, "other", "Paint the boat in spring."),
    )
    assert [found.document_id for found in opened.ranking(owner, query)] == ["code"]


def test_candidates_of_words_tell_how_many_terms_they_have(opened: Opened, owner: Owner) -> None:
    opened.write(
        entry(owner, "both", text="the valve opens, opened by a valve"),
        entry(owner, "one", text="a valve closes"),
        entry(owner, "titled", text="nothing of it", title="Opening a gate"),
    )
    found = opened.ranking(owner, "Does the valve open, or this valve?")
    assert {one.document_id: one.matched for one in found} == {"both": 2, "one": 1, "titled": 1}
    assert {one.matched for one in opened.ranking(owner, unit(1, 0, 0, 0))} == {0}


GERMAN = "Die Häuser werden geprüft. Der Zähler TBK-4092 ist in jedem."
ENGLISH = "The houses are inspected. Each has a Zähler TBK-4092."


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Wer prüft das Haus?", {"german"}),
        ("HAEUSER", {"german"}),
        ("inspecting a house", {"english"}),
        ("Zähler", {"german", "english"}),
        ("Zahler", {"german", "english"}),
        ("Welcher ist TBK-4092?", {"german", "english"}),
        ("отчет о проверке", {"russian"}),
        ("कलम", {"hindi"}),
        ("학점인정", {"korean"}),
        ("캘린더", {"decomposed"}),
        ("パスワード", {"japanese"}),
        ("阀门", {"chinese"}),
        ("ยา", {"thai"}),
        ("น้ำมัน", {"thai"}),
        ("แมว", set()),
        ("ວຽງຈັນ", {"lao"}),
        ("ភ្នំពេញ", {"khmer"}),
        ("ရန်ကုန်", {"burmese"}),
        ("Fahrrad", set()),
    ],
)
def test_a_query_matches_texts_in_their_languages(
    opened: Opened, owner: Owner, query: str, found: set[str]
) -> None:
    opened.write(
        entry(owner, "german", GERMAN, language="de"),
        entry(owner, "english", ENGLISH),
        entry(owner, "russian", "Отчёты подписаны.", language="ru"),
        entry(owner, "hindi", "क़लम मेज़ पर है।", language="hi"),
        entry(owner, "korean", "학점인정은 어렵다."),
        entry(owner, "decomposed", unicodedata.normalize("NFD", "캘린더를 본다.")),
        entry(owner, "japanese", unicodedata.normalize("NFD", "パスワードの設定")),
        entry(owner, "chinese", "检查阀门。"),
        entry(owner, "thai", "เก็บยาและน้ำมันไว้ที่เมืองใหม่"),
        entry(owner, "lao", "ນະຄອນຫຼວງວຽງຈັນຕັ້ງຢູ່ແຄມຂອງ"),
        entry(owner, "khmer", "រាជធានីភ្នំពេញមានផ្សារធំ"),
        entry(owner, "burmese", "မြို့တော်ရန်ကုန်မှာရှိသည်။"),
    )
    assert {one.document_id for one in opened.ranking(owner, query)} == found


def test_entries_of_the_former_version_are_found_until_they_are_written_again(
    opened: Opened, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = {
        "Die größten Häuser running.": "die größten häuser run",
        "학점인정은 어렵다.": "학점인정은 어렵다",
        "किताबें": "क त ब",
        "ทีมรับของแพนเธอร์": "ท มร บของแพนเธอร",
    }
    new = entry(owner, "new", "Die größten Häuser.", language="de")
    with monkeypatch.context() as patched:
        patched.setattr(fields, "compute_entry_terms", lambda text, _: former[text])
        opened.write(*(entry(owner, text, text) for text in former))
    for rewritten in (False, True):
        for query in ("größten", "Häuser", "runs"):
            assert "Die größten Häuser running." in {
                one.document_id for one in opened.ranking(owner, query)
            }
        assert [one.document_id for one in opened.ranking(owner, "किताबें")] == ["किताबें"]
        korean = "학점인정" if rewritten else "학점인정은"
        assert [one.document_id for one in opened.ranking(owner, korean)] == ["학점인정은 어렵다."]
        [thai] = opened.ranking(owner, "ใครคือทีมรับของแพนเธอร์")
        assert thai.document_id == "ทีมรับของแพนเธอร์"
        opened.write(new, *(entry(owner, text, text) for text in former))


def test_hidden_entries_of_another_language_do_not_change_how_words_are_searched(
    opened: Opened, owner: Owner
) -> None:
    opened.write(entry(owner, "logs", "All logs are kept."), entry(owner, "logo", "A logo."))
    before = [(one.document_id, one.score) for one in opened.ranking(owner, "logos")]
    hidden = entry(owner, "hidden", "Logos di un log", language="it", access_scope="board")
    opened.write(hidden)
    readable = opened.ranking(owner, "logos", scopes=frozenset({"public"}))
    assert [(one.document_id, one.score) for one in readable] == before
    assert [document for document, _ in before] == ["logo"]


def test_one_searcher_finds_entries_in_languages_that_are_written_between_its_searches(
    opened: Opened, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = {"scopes": frozenset({"public"})}

    async def ask(searcher: EntrySearcher) -> None:
        async def found(query: str, **wanted: Any) -> set[str]:
            request = RankingRequest(query, 10, EntryFilter(**wanted))
            [candidates] = await searcher.rankings(opened.name, owner, [request])
            return {candidate.document_id for candidate in candidates}

        opened.write(entry(owner, "english", "All houses have a logo."))
        for query in ("house", "logos", "house"):
            assert await found(query, **public) == {"english"}
        board = {"language": "it", "access_scope": "board"}
        opened.write(entry(owner, "german", GERMAN, language="de", access_scope="board"))
        opened.write(entry(owner, "italian", "Logos di un log", **board))
        assert await found("Wer prüft das Haus?", **public) == set()
        assert await found("Wer prüft das Haus?") == {"german"}
        assert await found("logos") == {"italian", "english"}
        assert await found("logos", **public) == {"english"}
        with monkeypatch.context() as patched:
            patched.setattr(fields, "compute_entry_terms", lambda *_: "die größten häuser run")
            opened.write(entry(owner, "former", "Die größten Häuser running."))
        assert await found("größten", **public) == {"former"}
        assert await found("Häuser") == {"former", "german"}
        opened.write(entry(owner, "former", "Die größten Häuser running.", language="de"))
        assert await found("groesste", **public) == await found("größte") == {"former"}

    opened.ask(ask)


def test_a_title_is_searched_too(opened: Opened, owner: Owner) -> None:
    opened.write(entry(owner, "pump", title="Sluices and weirs"), entry(owner, "valve"))
    assert [found.document_id for found in opened.ranking(owner, "weirs")] == ["pump"]


def test_several_rankings_are_made_in_one_call(opened: Opened, owner: Owner) -> None:
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
PUBLIC = frozenset({"public"})
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
    ({"metadata": {"team": ["north"]}}, ["guide"]),
    ({"metadata": {"draft": ["true"]}}, ["note"]),
    ({"metadata": {"team": ["north"], "draft": ["true"]}}, []),
    ({"metadata": {"team": ["south", "north"]}}, ["guide"]),
    ({"metadata": {"team": ["north", None], "draft": [None]}, "paths": ["files/docs"]}, ["guide"]),
    ({"metadata": {"team": ["south", None]}, "scopes": frozenset({"crew"})}, ["note"]),
    ({"without_metadata": {"team": ["south", "north"]}, "tags": ["red"]}, ["page"]),
    ({"without_metadata": {"team": ["south"]}, "tags": ["red"]}, ["guide", "page"]),
    ({"tags": ("red",), "languages": ("de",), "sources": ("web",)}, ["page"]),
    *(
        ({name: ()}, [])
        for name in ("documents", "paths", "languages", "tags", "source_types", "sources", "pages")
    ),
    ({"metadata": {"team": []}}, []),
    ({"pages": ("p-note",)}, ["note"]),
    ({"pages": ("p-note", "p-page", "p-absent")}, ["note", "page"]),
    ({"pages": ("p-note", "p-page"), "scopes": frozenset({"public"})}, ["page"]),
    ({"pages": ("p-absent",)}, []),
    ({"pages": ()}, []),
    ({"scopes": PUBLIC, "moved": MovedPages(readable=("p-note",))}, ["guide", "note", "page"]),
    ({"scopes": PUBLIC, "moved": MovedPages(unreadable=("p-page",))}, ["guide"]),
    ({"scopes": frozenset(), "moved": MovedPages(readable=("p-note",))}, ["note"]),
    ({"scopes": PUBLIC, "moved": MovedPages(("p-note",), ("p-page",))}, ["guide", "note"]),
    (
        {"scopes": PUBLIC, "moved": MovedPages(("p-note",), ("p-page",)), "pages": ("p-page",)},
        [],
    ),
    ({"scopes": PUBLIC, "moved": MovedPages(("p-note",)), "pages": ("p-note",)}, ["note"]),
    ({"scopes": PUBLIC, "moved": MovedPages(("p-note",)), "sources": ("web",)}, ["page"]),
]


@pytest.fixture(scope="module")
def filtered(module_store: VectorStore) -> tuple[Opened, Owner]:
    opened = Opened(module_store, module_store.indexes.place(SPEC, "any", "shared"))
    owner = owner_of(f"filtered{uuid4().hex[:8]}")
    opened.write(
        entry(owner, "guide", uri="files/docs/guide.md", tags=("red",), metadata={"team": "north"}),
        entry(owner, "note", access_scope="crew", metadata={"draft": True}, page_uuid="p-note"),
        entry(
            owner,
            "page",
            uri="web/page",
            source="web",
            source_type="upload",
            language="de",
            modified_at=LATER,
            tags=("red", "round"),
            page_uuid="p-page",
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


def test_vectors_are_read_bit_for_bit_with_the_ids_of_their_passages(
    opened: Opened, owner: Owner
) -> None:
    chance = np.random.default_rng(3)
    wanted = {}
    for number in range(20):
        made = entry(owner, f"v{number}", vector=unit(*chance.normal(size=4)))
        passage = f"guide:docs/{number} ü.md" if number % 2 else None
        document = replace(made.document, passage_source=passage)
        made = replace(made, document=document)
        opened.write(made)
        wanted[made.id] = (f"{passage or f'{owner.tenant}:v{number}.md'}:0", made.vector.tobytes())
    stranger = entry(owner_of(f"{owner.tenant}x"), "v0")
    opened.write(stranger)
    ids = [*wanted, stranger.id, "0" * 64]
    found = opened.ask(lambda searcher: searcher.vectors(opened.name, owner, ids))
    assert {id_: (v.chunk_id, v.vector.tobytes()) for id_, v in found.items()} == wanted
    assert opened.ask(lambda searcher: searcher.vectors(opened.name, owner, [])) == {}
