"""Retrieval quality in Dagster: the check, the weekly run, and a run after each publication."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from examples.judged.judgements import ANNEX, judged_questions
from rag_assets.cli.session import Session
from rag_assets.definitions import build_defs
from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.quality.store import store_questions
from tests.installation import FAST, Installation
from tests.sensor_resources import sensor_resources

pytestmark = pytest.mark.long

TOPICS = ("anchor", "barrel", "candle")
WORDS = {"retrieval": {"mode": "text"}}
CHECK = "retrieval_quality.retrieval_quality"
KEY = dg.AssetKey("retrieval_quality")


@pytest.fixture(scope="module")
def two(shared_installation: Installation) -> Installation:
    """Create two synced tenants, the first with judged questions."""
    for name in ("judged", "unjudged"):
        folder = shared_installation.add_tenant(name, **FAST, **WORDS, quality={"least": 2})
        for topic in TOPICS:
            text = f"# About the {topic}\n\nThe {topic} is kept behind the second door.\n"
            (folder / f"{topic}.md").write_text(text)
        shared_installation.synced(name)
    judge(shared_installation, TOPICS)
    return shared_installation


def judge(installation: Installation, topics: tuple[str, ...]) -> None:
    session = installation.session()
    questions = [
        JudgedQuestion(
            topic,
            "",
            f"Where is the {topic}?",
            (Judgement(f"files/{topic}.md", f"The {topic} is"),),
        )
        for topic in topics
    ]
    ref = session.catalog.tenants.get("judged").ref
    store_questions(session.catalog, ref, questions, others="replace judged")


def check(installation: Installation, tenant_id: str) -> dict[str, Any]:
    """Return the check's result as the command prints it."""
    result = installation.command("check", tenant_id, "--json")
    checks: list[dict[str, Any]] = result.json["checks"]
    [found] = [one for one in checks if f"{one['asset']}.{one['check']}" == CHECK]
    return found


class Watcher:
    """Ticks the schedule and the sensor, and executes the requested runs."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.repository = build_defs().get_repository_def()
        self.cursor: str | None = None

    def run(self, **config: Any) -> None:
        job = self.repository.get_job("measure_quality")
        result = job.execute_in_process(instance=self.session.instance, run_config=config)
        assert result.success

    def tick(self) -> list[Any]:
        """Return the tenants of each run that the sensor requests."""
        sensor = self.repository.get_sensor_def("published_builds")
        with dg.build_sensor_context(
            instance=self.session.instance,
            cursor=self.cursor,
            repository_def=self.repository,
            resources=sensor_resources(),
        ) as context:
            result = sensor.evaluate_tick(context)
        self.cursor = result.cursor
        requests = result.run_requests or []
        for request in requests:
            self.run(**request.run_config)
        return [r.run_config["ops"]["measure_tenants"]["config"]["tenants"] for r in requests]

    def measured(self, tenant_id: str) -> list[dict[str, Any]]:
        """Return the metadata of each materialization, oldest first."""
        records = self.session.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=KEY, asset_partitions=[tenant_id]), limit=20
        ).records
        return [
            {name: value.value for name, value in record.asset_materialization.metadata.items()}
            for record in reversed(records)
            if record.asset_materialization is not None
        ]


@pytest.fixture
def watcher(two: Installation) -> Iterator[Watcher]:
    with Session() as session:
        yield Watcher(session)


def test_the_weekly_run_reports_numbers_that_are_plotted(watcher: Watcher) -> None:
    before = len(watcher.measured("judged"))
    watcher.run()
    assert watcher.measured("unjudged") == []
    found = watcher.measured("judged")
    assert len(found) == before + 1
    for measure in ("nDCG@10", "recall@5", "recall@10", "MRR"):
        assert found[-1][measure] == 1.0
    assert (found[-1]["questions"], found[-1]["generation"]) == (3, 1)


def test_a_publication_is_measured_once(two: Installation, watcher: Watcher) -> None:
    assert watcher.tick() == [], "what was published before is not measured again"
    before = len(watcher.measured("judged"))
    for name in ("judged", "unjudged"):
        two.configure(name, chunker={"chunker": "sentence", "max_characters": 200})
        two.synced(name)
    assert watcher.tick() == [["judged"]]
    assert watcher.tick() == []
    found = watcher.measured("judged")
    assert len(found) == before + 1
    assert found[-1]["generation"] == 2


def test_the_check_measures_the_build_that_serves(two: Installation) -> None:
    for topics, passed, said in (
        (TOPICS, True, "nDCG@10 1.000"),
        (("anchor",), False, "only 1 judged question, and at least 2 are needed"),
        (("anchor", "barrel", "lost"), False, "documents that answer 1 question no longer exist"),
        ((), True, "no judged questions"),
    ):
        judge(two, topics)
        found = check(two, "judged")
        assert found["passed"] is passed
        assert said in found["description"]
        assert passed or found["severity"] == "WARN"
        compared = {row["what"]: row for row in found["metadata"]["expected and actual"]}
        assert compared["judged questions asked, at least"]["expected"] == "2"
    judge(two, TOPICS)
    assert two.command("check", "judged").code == 0


def test_questions_that_cannot_be_asked_are_a_warning(two: Installation, watcher: Watcher) -> None:
    folder = two.add_tenant("priced", **FAST, quality={"least": 1})
    (folder / "anchor.md").write_text("# About the anchor\n\nThe anchor is kept here.\n")
    two.synced("priced")
    two.configure(
        "priced",
        caps={"per_day": 0.0001},
        embedder={"provider": "deterministic", "price": {"per_million": 1_000}},
    )
    session = two.session()
    session.reconcile()
    question = JudgedQuestion(
        "a", "", "Where is it?", (Judgement("files/anchor.md", "The anchor is"),)
    )
    store_questions(session.catalog, session.catalog.tenants.get("priced").ref, [question])
    found = check(two, "priced")
    assert (found["passed"], found["severity"]) == (False, "WARN")
    assert "the cap of" in found["description"]
    watcher.run()
    assert watcher.measured("priced") == []


def states(installation: Installation, tenant_id: str) -> dict[int, str]:
    live = installation.session().catalog.generations.live(tenant_id)
    return {build.number: build.state for build in live}


def test_a_build_that_answers_worse_is_held_by_itself_and_a_better_one_is_published(
    shared_installation: Installation,
) -> None:
    """The builds: local model, chunks of 16 tokens, hashes as vectors, larger chunks."""
    source = {"name": "annex", "type": "files", "root": str(ANNEX)}
    # Entries of other tests change word scores by about .01.
    quality = {"tolerance": 0.05}
    shared_installation.add_tenant("answering", root=ANNEX, sources=[source], quality=quality)
    shared_installation.synced("answering")
    session = shared_installation.session()
    questions = [
        question
        for question in judged_questions()
        if question.answerable
        and all(judgement.path.startswith("annex/") for judgement in question.relevant)
    ]
    store_questions(session.catalog, session.catalog.tenants.get("answering").ref, questions)
    for number, change in (
        (2, {"chunker": {"chunker": "recursive", "max_tokens": 16, "overlap": 0}}),
        (3, {"chunker": None, "embedder": {"provider": "deterministic"}}),
    ):
        shared_installation.configure("answering", **change)
        shared_installation.synced("answering")
        assert states(shared_installation, "answering")[number] == "HELD"
        assert states(shared_installation, "answering")[1] == "SERVING"
        [held] = [
            build
            for build in session.catalog.generations.live("answering")
            if build.number == number
        ]
        assert held.reason is not None
        assert f"build {number} answers worse than build 1" in held.reason
        assert shared_installation.search("answering", questions[0].question)
    found = check(shared_installation, "answering")
    assert (found["passed"], found["severity"]) == (False, "ERROR")
    assert "build 3 answers worse than build 1" in found["description"]
    assert found["metadata"]["offenders"] >= 1
    chunker = {"chunker": "heading", "max_tokens": 400, "overlap": 50}
    shared_installation.configure("answering", embedder=None, chunker=chunker)
    shared_installation.synced("answering")
    assert states(shared_installation, "answering")[4] == "SERVING"
    found = check(shared_installation, "answering")
    assert found["passed"], found["description"]
    assert "serving build 4" in found["description"]
