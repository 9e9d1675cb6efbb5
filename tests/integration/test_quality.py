"""Judged questions: stored, asked of serving and other builds, and used to judge builds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.judged.judgements import ANNEX, judged_questions
from rag_assets.common.errors import CapReached, UnknownGeneration
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality.asking import AskOptions
from rag_assets.quality.evaluation import compare_builds, evaluate_build, judge_build
from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.quality.store import propose_questions, read_questions, store_questions
from rag_assets.search.model import SearchRequest
from rag_assets.storage.catalog.accounts.usage import today
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.records.model import PushedRecord
from tests.driving import Driver, tenant_named_after
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import FAST, Installation
from tests.integration.aging import AgingTenant
from tests.records import put_record

WORDS = {"retrieval": {"mode": "text"}}
"""For tests in which vectors are not asked for."""
TINY = {"chunker": {"chunker": "recursive", "max_tokens": 16, "overlap": 0}}
TOPICS = ("anchor", "barrel", "candle", "dynamo", "engine", "funnel")


def write(folder: Path) -> None:
    for topic in TOPICS:
        said = f"The {topic} of the ship is kept in room {len(topic)}, behind the second door."
        headings = f"# About the {topic}\n\n## The place of the {topic}"
        (folder / f"{topic}.md").write_text(f"{headings}\n\n{said}\n")


def asked(topic: str, **more: Any) -> JudgedQuestion:
    relevant = (Judgement(f"files/{topic}.md", f"The {topic} of the ship is kept in room"),)
    return JudgedQuestion(topic, "", f"Where is the {topic} kept?", relevant, **more)


@pytest.fixture
def tenant(shared_installation: Installation, request: pytest.FixtureRequest) -> str:
    """Create a tenant with six documents that is not synced yet."""
    name = tenant_named_after(request)
    write(shared_installation.add_tenant(name, **FAST, **WORDS))
    return name


def builds(ctx: TenantContext) -> list[Generation]:
    return ctx.catalog.generations.live(ctx.ref.id)


# -- a search of a named build


def test_a_search_may_name_a_build_that_does_not_serve(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    driver.sync(tenant)
    shared_installation.configure(tenant, **TINY)
    driver.sync(tenant)
    request = SearchRequest(query="where is the anchor kept", mode="text")
    retriever = shared_installation.retriever
    answers = [retriever.search(tenant, request, generation=n) for n in (None, 1, 2)]
    assert [answer.generation for answer in answers] == [2, 1, 2]
    first = [answer.hits[0] for answer in answers]
    assert first[0].ranges == first[2].ranges
    # What was cut into several passages is one hit again.
    assert len(first[1].ranges) == 1 < len(first[2].ranges)
    assert all("room 6" in hit.text for hit in first)


def test_a_build_that_is_not_there_is_refused(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    driver.sync(tenant)
    with pytest.raises(UnknownGeneration):
        shared_installation.retriever.search(tenant, SearchRequest(query="anchor"), generation=7)


# -- judgements in the catalog


def test_judgements_are_imported_listed_exported_and_asked(
    shared_installation: Installation, driver: Driver, tenant: str, tmp_path: Path
) -> None:
    command = shared_installation.command
    driver.sync(tenant)
    file = tmp_path / "judged.yaml"
    lines = [
        f"- id: {topic}\n  question: Where is the {topic} kept?\n  relevant:\n"
        f"    - {{path: files/{topic}.md, quote: The {topic} of the ship, grade: 3}}\n"
        for topic in ("anchor", "barrel", "gone")
    ]
    file.write_text("".join(lines) + "- id: who\n  kind: none\n  question: Who sang?\n")
    imported = command("judgements", "import", tenant, str(file), "--json")
    assert imported.code == 0, imported.err
    assert imported.json["questions"] == 4
    assert imported.json["unknown_documents"] == ["files/gone.md"]
    assert "judged.yaml, line 12" in imported.err
    listed = command("judgements", "list", tenant, "--json").json["questions"]
    assert {row["id"]: row["gone"] for row in listed} == {
        "anchor": [],
        "barrel": [],
        "gone": ["files/gone.md"],
        "who": [],
    }
    exported = command("judgements", "export", tenant)
    again = tmp_path / "again.yaml"
    again.write_text(exported.out)
    assert command("judgements", "import", tenant, str(again), "--replace").code == 0
    assert command("judgements", "export", tenant).out == exported.out

    found = command("eval", tenant, "--json")
    assert found.code == 0, found.err
    [evaluation] = found.json["evaluations"]
    assert evaluation["judged"]["questions"] == 2
    assert evaluation["judged"]["overall"]["nDCG@10"] == {"mean": 1.0, "low": 1.0, "high": 1.0}
    assert evaluation["judged"]["by_question"].keys() == {"anchor", "barrel"}
    assert evaluation["gone"] == {"gone": ["files/gone.md"]}
    assert (evaluation["unmeasured"], evaluation["unanswerable"]) == (["gone"], 1)
    shown = command("eval", tenant)
    assert "gone (not measured): missing documents: files/gone.md" in shown.err
    assert "1.000 (1.00 to 1.00)" in shown.out

    shorter = tmp_path / "shorter.yaml"
    shorter.write_text(lines[0])
    assert command("judgements", "import", tenant, str(shorter), "--replace").code == 0
    left = command("judgements", "list", tenant, "--json").json["questions"]
    assert [row["id"] for row in left] == ["anchor"]


def test_a_wrong_line_stores_nothing(
    shared_installation: Installation, driver: Driver, tenant: str, tmp_path: Path
) -> None:
    driver.sync(tenant)
    token = "gh" + "p_" + "Zk3Qx9Lm2Vb7Nc4Rt8Yw1Hd6Jf5Gs0Pa3Ue2"
    file = tmp_path / "judged.yaml"
    file.write_text(
        "- id: right\n  question: Where?\n  relevant: [{path: files/anchor.md}]\n"
        f"- id: secret\n  kind: none\n  question: Does {token} still work?\n"
    )
    result = shared_installation.command("judgements", "import", tenant, str(file))
    assert result.code == 1
    assert "judged.yaml, line 4: the line contains a credential" in result.err
    assert token not in result.err
    assert driver.session.catalog.judgements.all(tenant) == []


def test_beir_names_documents_by_uri_id_or_record(
    shared_installation: Installation, driver: Driver, tenant: str, tmp_path: Path
) -> None:
    folder = shared_installation.home.parent / "sources" / tenant
    files = {"name": "files", "type": "files", "root": str(folder)}
    pushed = {"name": "pushed", "type": "records"}
    shared_installation.configure(tenant, sources=[files, pushed])
    driver.sync(tenant)
    catalog = driver.session.catalog
    record = PushedRecord(
        "pushed", "page", "4711", "The candle is lit.", "text/markdown", SourceMetadata()
    )
    put_record(catalog.records, catalog.tenants.get(tenant).ref, record, scope="public")
    driver.sync(tenant)
    ids = {d.uri: d.document_id for d in catalog.documents.all(tenant)}
    (tmp_path / "qrels").mkdir()
    queries = [{"_id": topic, "text": f"is the {topic} lit"} for topic in TOPICS[:3]]
    (tmp_path / "queries.jsonl").write_text("".join(f"{json.dumps(query)}\n" for query in queries))
    (tmp_path / "qrels" / "test.tsv").write_text(
        f"query-id\tcorpus-id\tscore\nanchor\tfiles/anchor.md\t1\n"
        f"barrel\t{ids['files/barrel.md']}\t1\ncandle\t4711\t2\n"
    )
    command = shared_installation.command
    imported = command("judgements", "import", tenant, str(tmp_path), "--json")
    assert imported.json["unknown_documents"] == []
    [found] = command("eval", tenant, "--json").json["evaluations"]
    measured = found["judged"]["by_question"]
    assert {id_: values["recall@5"] for id_, values in measured.items()} == {
        "anchor": 1.0,
        "barrel": 1.0,
        "candle": 1.0,
    }


def test_judgements_on_pruned_documents_go_with_them(
    shared_installation: Installation, driver: Driver, request: pytest.FixtureRequest
) -> None:
    tenant = AgingTenant.made(
        shared_installation, driver, tenant_named_after(request), retention_days={"page": 30}
    )
    tenant.push("47", "## The helm\n\nThe helm of the ship is kept in a room.")
    tenant.write("barrel", "The barrel of the ship is kept in a room.")
    tenant.sync()
    with tenant.within() as ctx:
        helm = Judgement("47", "The helm of the ship")
        questions = [
            JudgedQuestion("both", "", "Where is either?", (*asked("barrel").relevant, helm)),
            JudgedQuestion("one", "", "Where is the wheel?", (helm,)),
        ]
        store_questions(ctx.catalog, ctx.ref, [*questions, *propose_questions(ctx, 9)])
        assert len(read_questions(ctx.catalog, tenant.id)) == 4
    assert "helm" in tenant.catalog_rows()
    tenant.forward(days=31)
    [receipt] = tenant.prune().receipts
    assert receipt.counts["judgements"] == {"judgements": 3}
    assert "helm" not in tenant.catalog_rows().lower()
    with tenant.within() as ctx:
        both, synthetic = read_questions(ctx.catalog, tenant.id)
    assert (both.id, both.relevant) == ("both", asked("barrel").relevant)
    assert synthetic.relevant[0].path == "files/barrel.md"


# -- vectors of questions


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
    monkeypatch.setenv("A_KEY", "any key")
    with embedding_server() as server:
        yield server


def remote(server: EmbeddingServer, **more: Any) -> dict[str, Any]:
    embedder = {
        "provider": "openai-compatible",
        "model": "m",
        "dimensions": server.dimensions,
        "base_url": server.url,
        "api_key": "$A_KEY",
        "price": {"per_million": 1_000},
    }
    return {"embedder": embedder, **more}


def test_questions_are_paid_for_once(installation: Installation, server: EmbeddingServer) -> None:
    write(installation.add_tenant("paid", **remote(server)))
    driver = Driver(installation)
    driver.sync("paid")
    with driver.locked("paid") as ctx:
        store_questions(ctx.catalog, ctx.ref, map(asked, TOPICS))
        usage = ctx.catalog.usage
        before = usage.read_spending("paid", today())
        sent = len(server.requests)
        first = evaluate_build(ctx, builds(ctx)[0], AskOptions("hybrid"))
        spent = usage.read_spending("paid", today())
        assert first.embedded == len(TOPICS)
        assert len(server.requests) > sent
        assert spent.day > before.day
        assert spent.run == before.run, "an evaluation is no part of a sync"
        sent = len(server.requests)
        second = evaluate_build(ctx, builds(ctx)[0], AskOptions("hybrid"))
        assert (second.embedded, len(server.requests)) == (0, sent)
        assert usage.read_spending("paid", today()) == spent
        assert second.people == first.people
        searched = ctx.catalog.events.latest("paid", kind="rag_search_started")
        assert searched == [], "nobody searched"
        store_questions(ctx.catalog, ctx.ref, [asked("anchor")], others="replace judged")
        assert evaluate_build(ctx, builds(ctx)[0], AskOptions("hybrid")).embedded == 0
        store_questions(ctx.catalog, ctx.ref, [asked("barrel")])
        again = evaluate_build(ctx, builds(ctx)[0], AskOptions("hybrid"))
        assert again.embedded == 1, "the vector of a question that was removed goes with it"


def test_a_cap_keeps_questions_from_being_embedded(
    installation: Installation, server: EmbeddingServer
) -> None:
    write(installation.add_tenant("capped", **remote(server)))
    driver = Driver(installation)
    driver.sync("capped")
    installation.configure("capped", caps={"per_day": 0.0001})
    sent = len(server.requests)
    with driver.locked("capped") as ctx:
        store_questions(ctx.catalog, ctx.ref, map(asked, TOPICS))
        with pytest.raises(CapReached):
            evaluate_build(ctx, builds(ctx)[0], AskOptions("hybrid"))
        words = evaluate_build(ctx, builds(ctx)[0], AskOptions("text"))
    assert len(server.requests) == sent
    assert len(words.people.ids) == len(TOPICS), "words need no vector"


def test_documents_that_few_may_read_are_measured_too(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    shared_installation.configure(tenant, access={"scope": "crew"})
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        ctx.catalog.access.grant(ctx.ref, "crew", ["ada"])
        store_questions(ctx.catalog, ctx.ref, map(asked, TOPICS))
        found = evaluate_build(ctx, builds(ctx)[0], AskOptions("text"))
    assert set(found.people.values["MRR"].values()) == {1.0}


# -- two builds


def test_only_documents_that_both_builds_hold_in_one_version_count(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    folder = shared_installation.home.parent / "sources" / tenant
    driver.sync(tenant)
    shared_installation.configure(tenant, chunker={"chunker": "sentence", "max_characters": 200})
    driver.sync(tenant)
    # From now on only the second build is kept up to date.
    (folder / "anchor.md").write_text("# About the anchor\n\nIt was sold.\n")
    (folder / "news.md").write_text("# Where is the barrel kept?\n\nWhere is the barrel kept?\n")
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        store_questions(ctx.catalog, ctx.ref, map(asked, TOPICS))
        old, new = builds(ctx)
        alone = evaluate_build(ctx, new, AskOptions("text"))
        assert alone.people.values["nDCG@10"]["anchor"] == 0.0
        assert alone.people.values["nDCG@10"]["barrel"] < 1.0
        both = compare_builds(ctx, new, old, AskOptions("text"))
    assert both.apart == ("anchor",)
    for found in (both.new, both.serving):
        assert set(found.people.ids) == set(TOPICS[1:])
        assert found.people.values["nDCG@10"]["barrel"] == 1.0


@pytest.fixture(scope="module")
def judged(shared_installation: Installation, driver: Driver) -> str:
    """Create a tenant with the annex of the judged set, embedded by the local model."""
    questions = [
        question
        for question in judged_questions()
        if question.answerable
        and all(judgement.path.startswith("annex/") for judgement in question.relevant)
    ]
    source = {"name": "annex", "type": "files", "root": str(ANNEX)}
    shared_installation.add_tenant("judged", root=ANNEX, sources=[source])
    driver.sync("judged")
    with driver.locked("judged") as ctx:
        store_questions(ctx.catalog, ctx.ref, questions)
    assert len(questions) >= 30
    return "judged"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"chunker": {"chunker": "recursive", "max_tokens": 16, "overlap": 0}}, id="tiny"
        ),
        pytest.param({"embedder": {"provider": "deterministic"}}, id="deterministic"),
    ],
)
def test_a_worse_build_fails_for_its_answers_and_a_better_one_passes(
    shared_installation: Installation, driver: Driver, judged: str, change: dict[str, Any]
) -> None:
    shared_installation.configure(judged, **change)
    driver.sync(judged)
    shared_installation.configure(judged, **dict.fromkeys(change))
    with driver.locked(judged) as ctx:
        good, *_, worse = builds(ctx)
        verdict = judge_build(ctx, worse, good)
        assert verdict.outcome == "fail", verdict.description
        assert f"build {worse.number} answers worse than build {good.number}" in verdict.description
        assert any(one.is_lower for one in verdict.guarded)
        assert verdict.worse
        assert verdict.apart == ()
        better = judge_build(ctx, good, worse)
        assert better.outcome == "pass", better.description


def test_few_questions_warn_and_do_not_forbid(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    driver.sync(tenant)
    shared_installation.configure(tenant, chunker={"chunker": "sentence", "max_characters": 200})
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        assert judge_build(ctx, *builds(ctx)[::-1]).outcome == "pass", "nothing is judged"
        wrong = [
            JudgedQuestion(topic, "", "Who?", (Judgement(f"files/{topic}.md"),), relevant_from=1)
            for topic in TOPICS
        ]
        store_questions(ctx.catalog, ctx.ref, wrong)
        verdict = judge_build(ctx, *builds(ctx)[::-1])
        assert verdict.outcome == "warn"
        assert "only 6 judged questions, fewer than the required 20" in verdict.description


def test_a_serving_build_that_cannot_be_asked_forbids_nothing(
    installation: Installation, server: EmbeddingServer
) -> None:
    write(installation.add_tenant("moved", **remote(server), quality={"least": 2}))
    driver = Driver(installation)
    driver.sync("moved")
    installation.configure("moved", **FAST)
    driver.sync("moved")
    with driver.locked("moved") as ctx, pytest.MonkeyPatch.context() as environment:
        store_questions(ctx.catalog, ctx.ref, map(asked, TOPICS))
        environment.delenv("A_KEY")
        old, new = builds(ctx)
        verdict = judge_build(ctx, new, old)
    assert verdict.outcome == "warn"
    assert "nothing to compare with: build 1 cannot be searched" in verdict.description


# -- synthetic questions


def test_synthetic_questions_are_made_of_headings_and_reported_apart(
    shared_installation: Installation, driver: Driver, tenant: str
) -> None:
    driver.sync(tenant)
    command = shared_installation.command
    made = command("judgements", "propose", tenant, "--count", "4", "--json").json["questions"]
    assert len(made) == 4
    assert all(question["synthetic"] for question in made)
    assert {question["question"] for question in made} <= {
        f"About the {topic}: The place of the {topic}" for topic in TOPICS
    }
    [found] = command("eval", tenant, "--json").json["evaluations"]
    assert (found["judged"]["questions"], found["synthetic"]["questions"]) == (0, 4)
    assert found["synthetic"]["overall"]["MRR"]["mean"] == 1.0
    with driver.locked(tenant) as ctx:
        store_questions(ctx.catalog, ctx.ref, [asked("anchor")])
        again = {question.id: question for question in propose_questions(ctx, 4)}
        kept = {one.id: one for one in read_questions(ctx.catalog, tenant) if one.synthetic}
        assert again == kept
        store_questions(ctx.catalog, ctx.ref, [], others="replace synthetic")
        assert [one.id for one in read_questions(ctx.catalog, tenant)] == ["anchor"]
