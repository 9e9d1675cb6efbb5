"""Contexts: passages of documents, otherwise the plain text, otherwise none, in every failure."""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from itertools import product

import httpx
import pytest

from rag_assets.common.tokens import count_text
from rag_assets.search.model import Caller
from rag_assets.search.scoring import CALIBRATION_QUESTIONS
from rag_assets.storage.catalog.builds.measurements import (
    get_measured_floors,
    get_measured_threshold,
)
from rag_assets.storage.catalog.tenants.settings import OrganizationRef
from rag_assets.storage.index.elasticsearch import mapping
from rag_assets.storage.index.store import StoreConfig, open_store
from rag_assets.systems.team_guidelines.contexts import ContextRequest, Contexts
from tests.embedding_server import Cut, Slow, Status, embedding_server
from tests.integration.systems.team_guidelines.conftest import Guidelines, asked_cosine

NEAR = "# Locators\n\nUse data-testid attributes, cosine 0.90.\n"
FAR = "# Coffee\n\nThe machine is on the second floor, cosine 0.60.\n"
PLAIN = "Write tests in TypeScript.\n\n## Team Guidelines\nare kept.\n"
PLAIN_SECTION = f"## Team Guidelines\n\n{PLAIN}"
NOWHERE = "http://127.0.0.1:9"
TASKS = int(os.environ.get("RAG_ASSETS_ISOLATION_TASKS", "60"))
"""Random tasks of two organizations with three projects each."""


def expected(
    *, flag: bool, documents: str | None, key: bool, provider: bool, index: bool
) -> str | None:
    """Return the reason why there are no passages; None if there are some."""
    if not flag:
        return "feature-off"
    if documents is None:
        return "no-documents"
    if not key:
        return "no-key"
    if not provider:
        return "embedder-unavailable"
    if not index:
        return "index-unavailable"
    return "nothing-above-threshold" if documents == FAR else None


@pytest.mark.parametrize("documents", [None, FAR, NEAR], ids=["none", "far", "near"])
def test_the_table_of_fallbacks(guidelines: Guidelines, documents: str | None) -> None:
    organization = {None: "table-none", FAR: "table-far", NEAR: "table-near"}[documents]
    record = guidelines.project(organization, "web", **({"a": documents} if documents else {}))
    away = open_store(StoreConfig(NOWHERE))
    switches = list(product([True, False], repeat=5))
    for case, (flag, text, key, provider, index) in enumerate(switches):
        guidelines.switch(organization, on=flag)
        guidelines.set_text(record, PLAIN if text else " \n")
        if key:
            guidelines.give_key(organization)
        else:
            guidelines.ring.remove(OrganizationRef(organization), "openai")
        guidelines.server.always = None if provider else Status(404, reason="model_not_found")
        asked = len(guidelines.server.requests)
        found = guidelines.context(
            record, f"case {case}", store=None if index else away, explain=True
        )
        reason = expected(flag=flag, documents=documents, key=key, provider=provider, index=index)
        where = f"{flag=} {text=} {key=} {provider=} {index=}"
        assert found.reason == reason, where
        if reason is None:
            assert found.source == "documents", where
            assert "data-testid" in found.section
        elif text:
            assert (found.source, found.section) == ("text", PLAIN_SECTION), where
        else:
            assert (found.source, found.section, found.tokens) == ("none", "", 0), where
        assert found.tokens == count_text(found.section)
        if not (flag and documents and key):
            assert len(guidelines.server.requests) == asked, where
        if reason == "nothing-above-threshold":
            assert (found.threshold, found.nearest) == (0.75, pytest.approx(0.6, abs=1e-3))
            [miss] = found.near_misses or ()
            assert miss.file_name == "a.md"
            assert miss.score == found.nearest
    away.close()


def bytes_of_graphs(guidelines: Guidelines, index: str) -> int:
    """Return the size of an index's HNSW graphs; segments without a graph add nothing."""
    url = guidelines.installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]
    said = httpx.get(f"{url}/{index}/_stats/dense_vector").json()
    vectors = said["indices"][index]["total"]["dense_vector"]
    return int(vectors["off_heap"]["total_vex_size_bytes"])


@pytest.mark.parametrize("graph", [False, True], ids=["exact", "graph"])
def test_a_passage_counts_from_the_threshold_on(
    guidelines: Guidelines, monkeypatch: pytest.MonkeyPatch, *, graph: bool
) -> None:
    name = f"threshold-{graph}".lower()
    if graph:
        # Every segment of a dedicated index has a graph.
        monkeypatch.setattr(mapping, "compute_flat_index_threshold", lambda spec: 0)
        guidelines.begin_with(index={"placement": "dedicated"})
    cosines = ["0.7505", "0.7495", *(f"0.{number}" for number in range(10, 40))]
    rules = {f"rule{at}": f"Kept at cosine {cosine}.\n" for at, cosine in enumerate(cosines)}
    record = guidelines.project(name, "web", **rules)
    guidelines.begin_with()
    serving = guidelines.catalog.generations.serving(record.id)
    assert ("-own-" in serving.index_name) is graph
    if graph:
        assert bytes_of_graphs(guidelines, serving.index_name) > 0
    found = guidelines.context(record, "anything", explain=True)
    assert [chunk.score for chunk in found.chunks] == [pytest.approx(0.7505, abs=1e-5)]
    first, *_ = found.near_misses or ()
    assert first.score == pytest.approx(0.7495, abs=1e-5)
    assert (found.threshold, found.reason) == (0.75, None)
    assert found.nearest == found.chunks[0].score
    assert found.embedder.startswith("openai/text-embedding-3-small@1536")
    assert found.generation == serving.number
    assert found.latency_ms["embed"] >= 0


def test_a_provider_that_is_slow_or_gone_fails_no_prompt(guidelines: Guidelines) -> None:
    record = guidelines.project("slow", "web", a=NEAR)
    guidelines.set_text(record, PLAIN)
    for fault, reason in (
        (Slow(15.0), "embedder-unavailable"),
        (Cut(), "embedder-unavailable"),
        (Status(500), "embedder-unavailable"),
        (Status(400, reason="context_length_exceeded"), "embedder-unavailable"),
        (Status(401, reason="invalid_api_key"), "no-key"),
    ):
        guidelines.server.always = fault
        began = time.monotonic()
        found = guidelines.context(record, f"task with {fault}")
        assert (found.source, found.reason, found.section) == ("text", reason, PLAIN_SECTION)
        if isinstance(fault, Slow):
            assert time.monotonic() - began < 14
    guidelines.server.always = None
    assert guidelines.context(record, "again").source == "documents"


def test_a_lost_index_fails_no_prompt(guidelines: Guidelines) -> None:
    guidelines.begin_with(index={"placement": "dedicated"})
    record = guidelines.project("lost", "web", a=NEAR)
    guidelines.begin_with()
    assert guidelines.context(record).source == "documents"
    store = guidelines.driver.session.store
    store.indexes.drop(guidelines.catalog.generations.serving(record.id).index_name)
    found = guidelines.context(record, "another task")
    assert (found.source, found.reason) == ("none", "index-unavailable")
    guidelines.set_text(record, PLAIN)
    assert guidelines.context(record).section == PLAIN_SECTION


def test_disabled_documents_are_none(guidelines: Guidelines) -> None:
    record = guidelines.project("disabled", "web", a=NEAR)
    [upload] = guidelines.catalog.uploads.all(record.id)
    guidelines.catalog.uploads.set_enabled(record.ref, upload.id, "ada", enabled=False)
    assert guidelines.context(record).reason == "no-documents"
    guidelines.catalog.uploads.set_enabled(record.ref, upload.id, "ada", enabled=True)
    guidelines.driver.sync(record.id)
    assert guidelines.context(record).source == "documents"


@pytest.mark.long
def test_projects_get_their_own_passages_alone(guidelines: Guidelines) -> None:
    rng = random.Random(17)
    long = "It is to be kept in every test that anybody writes. " * 30
    records = {
        f"{organization} {project}": guidelines.project(
            organization,
            project,
            **{
                f"own{number}": f"Rule of {organization} {project}, cosine 0.{80 + number}. {long}"
                for number in range(7)
            },
        )
        for organization in ("alone", "apart")
        for project in ("one", "two", "three")
    }
    owners = {
        upload.id: name
        for name, record in records.items()
        for upload in guidelines.catalog.uploads.all(record.id)
    }

    async def ask(contexts: Contexts) -> None:
        for _ in range(TASKS):
            name = rng.choice([*records])
            words = rng.choices([*"abcdefgh", "Rule of", *records, "cosine"], k=6)
            request = ContextRequest(
                task=f"{rng.random()} {' '.join(words)}",
                top_k=rng.randint(1, 5),
                token_budget=rng.randint(300, 2_000),
            )
            found = await contexts.build(records[name], request, Caller())
            assert 1 <= len(found.chunks) <= request.top_k
            assert count_text(found.section) == found.tokens <= request.token_budget
            assert {owners[chunk.document_id] for chunk in found.chunks} == {name}
            assert set(re.findall(r"Rule of (\w+ \w+),", found.section)) == {name}

    guidelines.within(ask)


def test_providers_share_one_index_and_a_change_empties_no_context(
    guidelines: Guidelines,
) -> None:
    record = guidelines.project("change", "web", a=NEAR)
    guidelines.give_key("change", "gemini")
    before = guidelines.catalog.generations.serving(record.id)
    sources: list[tuple[str, str | None, str]] = []

    async def ask(contexts: Contexts) -> None:
        changed = asyncio.create_task(asyncio.to_thread(change))
        number = 0
        while not changed.done() or number < 20:
            number += 1
            present = await asyncio.to_thread(guidelines.catalog.tenants.get, record.id)
            request = ContextRequest(task=f"task {number}")
            found = await contexts.build(present, request, Caller())
            sources.append((found.source, found.reason, str(found.embedder).partition("@")[0]))
        await changed

    def change() -> None:
        guidelines.put("change", "web", provider="gemini")
        guidelines.driver.sync(record.id)

    guidelines.within(ask)
    assert {source for source, _, _ in sources} == {"documents"}, sources
    embedders = [embedder for _, _, embedder in sources]
    assert embedders[0] == "openai/text-embedding-3-small"
    assert embedders[-1] == "gemini/gemini-embedding-001"
    after = guidelines.catalog.generations.serving(record.id)
    assert after.number != before.number
    assert after.index_name == before.index_name
    assert "-index-1536-" in after.index_name


def test_a_model_of_768_numbers_is_filled_up_and_shares_the_index(
    guidelines: Guidelines,
) -> None:
    whole = guidelines.project("filled", "whole", a=NEAR)
    with embedding_server(dimensions=768, cosine=asked_cosine) as server:
        model = {"provider": "gemini", "model": "text-embedding-004", "base_url": server.origin}
        guidelines.begin_with(embedder={"providers": [model]})
        guidelines.give_key("filled", "gemini")
        guidelines.put("filled", "short", provider="gemini")
        record = guidelines.project("filled", "short", a=NEAR, b=FAR)
        guidelines.begin_with()
        assert server.requests
        found = guidelines.context(record)
    assert [chunk.file_name for chunk in found.chunks] == ["a.md"]
    assert found.chunks[0].score == pytest.approx(0.9, abs=1e-3)
    assert str(found.embedder).startswith("gemini/text-embedding-004@1536")
    indexes = {
        guidelines.catalog.generations.serving(tenant.id).index_name for tenant in (whole, record)
    }
    assert len(indexes) == 1
    assert "-index-1536-" in indexes.pop()


def test_settings_change_the_threshold(guidelines: Guidelines) -> None:
    record = guidelines.project("setting", "web", a=FAR)
    assert guidelines.context(record).reason == "nothing-above-threshold"
    guidelines.put("setting", "web", min_score=0.5)
    found = guidelines.context(record)
    assert (found.source, found.threshold) == ("documents", 0.5)


@pytest.mark.long
def test_the_first_questions_calibrate_the_threshold(guidelines: Guidelines) -> None:
    guidelines.begin_with(retrieval={})
    chances = [f"0.{number:02}" for number in range(10, 30)]
    rules = {f"chance{at}": f"# R{at}\n\nKept at cosine {c}.\n" for at, c in enumerate(chances)}
    rules["near"] = "# Locators\n\nUse data-testid attributes, cosine 0.45.\n"
    record = guidelines.project("calibrated", "web", **rules)
    guidelines.begin_with()
    found = guidelines.context(record, "the first question", explain=True)
    assert found.chunks[0].file_name == "near.md"
    assert len(found.chunks) < 5  # the others of five are below the threshold
    assert found.threshold is not None
    assert 0.2 < found.threshold < 0.4
    for number in range(2, CALIBRATION_QUESTIONS):
        guidelines.context(record, f"question {number}")
    serving = guidelines.catalog.generations.serving(record.id)
    assert len(get_measured_floors(serving, None)) == CALIBRATION_QUESTIONS - 1
    guidelines.context(record, "the last question")
    serving = guidelines.catalog.generations.serving(record.id)
    value = get_measured_threshold(serving, None)
    assert value == pytest.approx(found.threshold, abs=0.05)
    assert guidelines.context(record, "afterwards").threshold == value
    shown = guidelines.installation.command("thresholds", "show", record.id, "--json").json
    assert shown["thresholds"][0]["from"] == "calibration"
    assert shown["thresholds"][0]["described"] == 0.75
    # A threshold set by an admin applies from the next search on, in builds of the same embedder.
    command = ("thresholds", "measure", record.id)
    curve = guidelines.installation.command(*command, "--json").json
    assert (curve["origin"], curve["questions"]) == ("past tasks", CALIBRATION_QUESTIONS + 1)
    shares = [point["with_passages"] for point in curve["curve"]]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[-1]) == (1.0, 0.0)
    assert (
        "the reason for the threshold is missing"
        in guidelines.installation.command(*command, "--set", "0.5").err
    )
    credential = "AKIA" + "Q7X2MZP4LT9WKR3B"
    reason = f"tried with {credential}"
    done = guidelines.installation.command(*command, "--set", "0.5", "--reason", reason)
    assert done.code == 0, done.err
    kept = guidelines.catalog.generations.serving(record.id).thresholds[""]["reason"]
    assert kept.startswith("tried with ")
    assert credential not in kept
    assert guidelines.context(record, "once more").reason == "nothing-above-threshold"
    done = guidelines.installation.command(*command, "--calibrate")
    assert guidelines.context(record, "and again").threshold == pytest.approx(value, abs=0.1)


def test_a_description_is_followed_where_that_is_set_or_nothing_can_be_compared(
    guidelines: Guidelines,
) -> None:
    guidelines.begin_with(retrieval={})
    few = guidelines.project("few", "web", a=FAR)
    guidelines.begin_with()
    assert guidelines.context(few).threshold == 0.75
    described = guidelines.project("described", "web", a=FAR, b=NEAR, c=FAR, d=FAR, e=FAR, f=FAR)
    assert guidelines.context(described).threshold == 0.75
    serving = guidelines.catalog.generations.serving(described.id)
    assert not serving.thresholds
