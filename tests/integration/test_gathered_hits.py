"""How hits are presented: merged passages, grouped documents, scores that never rise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.search import Retriever
from rag_assets.search.gathering import MAX_PARTS
from rag_assets.search.model import Hit, SearchAnswer, SearchRequest
from tests.driving import Driver
from tests.installation import FAST, Installation

SENTENCES = [
    f"The {colour} valve of the {part} is {verb} by a technician of the {team} team in the morning."
    for colour in ("red", "blue", "green", "yellow")
    for part, verb, team in (
        ("boiler", "opened", "north"),
        ("pump", "cleaned", "south"),
        ("turbine", "checked", "east"),
        ("filter", "replaced", "west"),
        ("tank", "emptied", "night"),
        ("cooler", "flushed", "spare"),
    )
]
LONG = "# Valves\n\n" + "\n\n".join(SENTENCES) + "\n"
OTHER = (
    "# Valves\n\nThe black valve of the well is greased by a technician of the day team.\n\n"
    "The white valve of the sluice is painted by a technician of the late team at noon.\n"
)
POLICY = (
    "# Luggage\n\nEvery traveller may bring luggage of up to {} to the gate. Staff at the counter"
    " weigh it, attach a label with the destination and put it on the belt. Fragile things are"
    " marked and carried by hand to the aircraft. Whoever is late has to wait for the next flight"
    " and asks the staff at the counter for a voucher, which the restaurant on the upper floor"
    " takes in place of money until the evening.\n"
)


@pytest.fixture(scope="module")
def shared(shared_installation: Installation, driver: Driver) -> Installation:
    chunker = {"chunker": "heading", "max_tokens": 64, "overlap": 16}
    folder = shared_installation.add_tenant("gathered", **{**FAST, "chunker": chunker})
    (folder / "valves.md").write_text(LONG)
    (folder / "other.md").write_text(OTHER)
    policy = POLICY.format("20 kg")
    (folder / "luggage.md").write_text(policy)
    (folder / "luggage-crlf.md").write_bytes(policy.replace("\n", "\r\n").encode())
    (folder / "luggage-v2.md").write_text(policy.replace("the belt.", "the belt. Thank you."))
    (folder / "luggage-business.md").write_text(POLICY.format("40 kg"))
    driver.sync("gathered")
    return shared_installation


def ask(shared: Installation, query: str, **values: Any) -> SearchAnswer:
    return shared.retriever.search("gathered", SearchRequest.of(query=query, **values))


def of_document(hits: tuple[Hit, ...], name: str) -> list[Hit]:
    return [hit for hit in hits if hit.uri == f"files/{name}"]


def test_adjoining_passages_are_one_hit_with_the_documents_text(shared: Installation) -> None:
    hits = ask(shared, "valve technician", mode="text", top_k=5).hits
    assert len(hits) == 5, "others take the places of those that were merged"
    whole = ask(shared, "valve technician", mode="text", top_k=20).hits
    merged = of_document(whole, "valves.md")
    assert MAX_PARTS >= max(len(hit.ranges) for hit in merged) > 1
    for hit in (*merged, *of_document(hits, "valves.md")):
        assert hit.text == LONG[hit.start : hit.end]
        assert (hit.start, hit.end) == (hit.ranges[0].start, hit.ranges[-1].end)
        assert hit.chunk_id in {one.chunk_id for one in hit.ranges}
        lines = LONG[: hit.start].count("\n"), LONG[: hit.end].count("\n")
        assert (hit.line_start, hit.line_end) == (lines[0] + 1, lines[1] + 1)
    ordinals = sorted(one.ordinal for hit in merged for one in hit.ranges)
    assert ordinals == [*range(len(ordinals))], "each passage is in one hit"


def test_events_name_every_passage_of_a_merged_hit(shared: Installation, driver: Driver) -> None:
    retriever = Retriever(driver.session.catalog, driver.session.store, driver.session.embedders)
    query = SearchRequest(query="emptied by a technician", mode="text", top_k=20)
    answer = retriever.search("gathered", query)
    retriever.close()
    events = driver.session.catalog.events.latest("gathered", kind="rag_search_completed", limit=20)
    chosen = [one.chunk_id for hit in answer.hits for one in hit.ranges]
    assert len(chosen) > len(answer.hits)
    assert chosen in [event.payload["chosen"] for event in events]


def test_another_document_that_is_near_has_one_of_the_first_places(shared: Installation) -> None:
    hits = ask(shared, "valve technician", mode="text", top_k=5).hits
    assert {hit.uri for hit in hits[:3]} == {"files/valves.md", "files/other.md"}
    first = ask(shared, "valve technician", mode="text", top_k=3).hits
    assert {hit.uri for hit in first} == {"files/valves.md", "files/other.md"}
    [document] = {hit.document_id for hit in of_document(hits, "valves.md")}
    alone = ask(shared, "valve technician", mode="text", filters={"documents": [document]})
    passages = sum(len(hit.ranges) for hit in alone.hits)
    assert len(alone.hits) == 5 or passages == 12, "no more hits only where no passage is left"
    assert {hit.uri for hit in alone.hits} == {"files/valves.md"}


def test_copies_share_a_place_unless_a_figure_differs(shared: Installation) -> None:
    hits = ask(shared, "luggage traveller label destination", mode="text", top_k=10).hits
    shown = [hit for hit in hits if "traveller" in hit.text]
    assert len(shown) == 2
    copies = {"files/luggage.md", "files/luggage-crlf.md", "files/luggage-v2.md"}
    [same] = [hit for hit in shown if "20 kg" in hit.text]
    assert {same.uri, *same.also} == copies
    [other] = [hit for hit in shown if "40 kg" in hit.text]
    assert (other.uri, copies & {*other.also}) == ("files/luggage-business.md", set())


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"mode": "knn"}, "cosine"),
        ({"mode": "text"}, "words"),
        ({"mode": "text", "min_score": -1.0}, "words"),
        ({"mode": "hybrid"}, "fused"),
        ({"mode": "hybrid", "must_include_paths": ("files/luggage-business.md",)}, "fused"),
        ({"mode": "knn", "must_include_paths": ("files/luggage-business.md",)}, "fused"),
    ],
)
def test_scores_fall_in_every_mode(shared: Installation, values: dict[str, Any], kind: str) -> None:
    for top_k in (1, 3, 5, 50):
        for question in ("the valve of the pump", "luggage at the gate"):
            hits = ask(shared, question, top_k=top_k, **values).hits
            scores = [hit.score for hit in hits if hit.score is not None]
            assert len(scores) == len(hits) > 0
            assert scores == sorted(scores, reverse=True)
            assert len({hit.score_kind for hit in hits}) == 1
            assert all((hit.cosine is None) == (values == {"mode": "text"}) for hit in hits)
    # Within one document no hit gives way.
    paths = {"paths": ("files/luggage-business.md",)}
    alone = ask(shared, "luggage", filters=paths, **values).hits
    assert {hit.score_kind for hit in alone} == {kind}


def test_a_repeated_search_asks_the_reranker_for_no_pair_twice(
    shared_installation: Installation,
    driver: Driver,
    httpserver: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "localhost")
    monkeypatch.setenv("RERANK_KEY", "sk-of-repeated")
    chunker = {"chunker": "heading", "max_tokens": 64, "overlap": 16}
    rerank = {"url": httpserver.url_for("/rerank"), "api_key": "$RERANK_KEY", "seconds": 20}
    retrieval = {"mode": "text", "rerank": {**rerank, "first": 20}}
    tenant = {**FAST, "chunker": chunker, "retrieval": retrieval}
    folder = shared_installation.add_tenant("repeated", **tenant)
    sentences = [f"On day {day} {sentence.lower()}" for day in range(16) for sentence in SENTENCES]
    (folder / "days.md").write_text("# Days\n\n" + "\n\n".join(sentences) + "\n")
    driver.sync("repeated")
    sent: list[str] = []

    def answering(request: Request) -> Response:
        documents = request.get_json()["documents"]
        sent.extend(documents)
        results = [{"index": n, "relevance_score": -n} for n in range(len(documents))]
        return Response(json.dumps({"results": results}))

    httpserver.expect_request("/rerank").respond_with_handler(answering)
    session = shared_installation.session()
    retriever = Retriever(session.catalog, session.store, session.embedders)
    answer = retriever.search("repeated", SearchRequest(query="valve technician", top_k=50))
    retriever.close()
    assert answer.degraded == ()
    assert len(answer.hits) == 50
    fetched_at_first = 50 + 10
    passages = [one.chunk_id for hit in answer.hits for one in hit.ranges]
    assert len(passages) > fetched_at_first, "the search was repeated"
    assert 0 < len(sent) == len({*sent})


COPIES, REPORTS = 80, 9


@pytest.fixture(scope="module")
def copies(shared_installation: Installation, driver: Driver) -> Installation:
    chunker = {"chunker": "heading", "max_tokens": 512, "overlap": 0}
    folder = shared_installation.add_tenant("copies", **{**FAST, "chunker": chunker})
    policy = POLICY.format("20 kg")
    blanks = [at for at, sign in enumerate(policy) if sign == " "]
    for number in range(COPIES):
        # Each has an additional space elsewhere: all differ, and all say the same.
        at = blanks[number % len(blanks)]
        text = policy[:at] + " " * (1 + number // len(blanks) + 1) + policy[at + 1 :]
        (folder / f"copy-{number:02}.md").write_text(text)
    for number in range(REPORTS):
        words = " ".join(f"item{number}x{at}" for at in range(60))
        (folder / f"report-{number}.md").write_text(f"# Report {number}\n\nluggage {words}\n")
    driver.sync("copies")
    return shared_installation


@pytest.mark.parametrize("mode", ["hybrid", "knn", "text"])
def test_near_copies_leave_their_places_to_other_documents(copies: Installation, mode: str) -> None:
    question = SearchRequest.of(query="luggage traveller label destination", mode=mode, top_k=10)
    hits = copies.retriever.search("copies", question).hits
    [shown] = [hit for hit in hits if "copy" in hit.uri]
    others = {f"files/report-{number}.md" for number in range(REPORTS)}
    assert {hit.uri for hit in hits if hit is not shown} == others
    assert len({shown.uri, *shown.also}) == COPIES, "the shown one names all the others"


@pytest.mark.parametrize("mode", ["hybrid", "knn", "text"])
def test_a_search_ends_where_the_index_has_no_further_hits(copies: Installation, mode: str) -> None:
    paths = {"paths": tuple(f"files/copy-{number:02}.md" for number in range(COPIES))}
    question = SearchRequest.of(query="luggage at the gate", mode=mode, top_k=10, filters=paths)
    [shown] = copies.retriever.search("copies", question).hits
    assert len({shown.uri, *shown.also}) == COPIES


@pytest.mark.parametrize("mode", ["hybrid", "knn", "text"])
def test_another_document_behind_the_first_candidates_has_one_of_the_first_places(
    shared_installation: Installation, driver: Driver, mode: str
) -> None:
    tenant = f"crowded-{mode}"
    chunker = {"chunker": "heading", "max_tokens": 64, "overlap": 0}
    folder = shared_installation.add_tenant(tenant, chunker=chunker)
    by_whom = "by the crew of its own deck, who reports it to the office on the same day"
    sections = [f"## Part {n}\n\nValve {n} is closed {by_whom}.\n" for n in range(60)]
    # The best passage stands out, so all the others are close to each other.
    best = "## Closed valve\n\nThe valve is closed.\n\n"
    (folder / "long.md").write_text("# Engines\n\n" + best + "\n".join(sections))
    (folder / "other.md").write_text(f"# Pumps\n\nSome valve is closed {by_whom} or week.\n")
    driver.sync(tenant)
    hits = shared_installation.search(tenant, "the valve is closed", mode=mode, top_k=5)
    assert "files/other.md" in {hit.uri for hit in hits}
