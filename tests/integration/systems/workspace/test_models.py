"""An application chooses another model for its workspace: a real one, served like Ollama."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import pytest

from benchmarks.workspace_questions.measures import compute_ndcg
from examples.workspace.data import Question, people, questions, rows
from tests.driving import Driver
from tests.e5_server import E5_DIMENSIONS, e5_server
from tests.installation import Installation
from tests.integration.systems.workspace.marked_tree import ADMIN, Person, Workspace, workspace_of

pytestmark = pytest.mark.slow

SHORT = ("svc-spares", "svc-faq", "partners-warranty", "partners-terms", "partners-news")
MORE = ("it-accounts", "fin-purchasing", "eng-sensor-drift", "eng-incident-0314", "canteen")
PAGES = {*SHORT, *MORE}
"""Pages of the example that are quickly embedded."""
GOOD = 0.6
"""nDCG@10 that either model reaches on so few pages, and chance does not."""


@dataclass(frozen=True)
class Found:
    """The parts of a hit that are judged."""

    uri: str
    document_id: str
    also: tuple[str, ...]
    text: str


@pytest.fixture(scope="module")
def workspace(shared_installation: Installation, driver: Driver) -> Iterator[Workspace]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        local = {"embedder": {"provider": "local"}}
        with workspace_of(shared_installation, driver, "osterby", **local) as made:
            tree = {row["uuid"]: row for row in rows("tree")}
            for uuid in [*PAGES, *({tree[uuid]["parent"] for uuid in PAGES} - {None}), "home"]:
                made.put(uuid, **{k: v for k, v in tree[uuid].items() if k != "uuid"})
            lines = [row for row in rows("records") if row["id"] in PAGES]
            answer = made.send("POST", "/rag/records", by=ADMIN, lines=lines)
            assert {one["outcome"] for one in answer.json()["lines"]} == {"queued"}, answer.text
            made.sync()
            yield made


ASKED = tuple(question for question in questions() if question.record in PAGES)


def asked(workspace: Workspace, which: Sequence[Question] = ASKED) -> dict[str, tuple[Found, ...]]:
    """Return the hits of vector searches, by question."""
    found = {}
    for question in which:
        who = people()[question.asker]
        person = Person(who.name, who.role, who.groups)
        hits = workspace.ask(person, question.question, mode="knn", top_k=10)
        found[question.id] = tuple(
            Found(h["uri"], h["document_id"], tuple(h["also"]), h["text"]) for h in hits
        )
    return found


def settings(workspace: Workspace, **changed: Any) -> Mapping[str, Any]:
    answer = workspace.send("PATCH", "/rag/settings", changed, by=ADMIN)
    assert answer.status_code == 200, answer.text
    answer_body: Mapping[str, Any] = answer.json()
    return answer_body


@pytest.mark.long
def test_a_served_model_follows_and_the_former_one_answers_until_then(
    workspace: Workspace,
) -> None:
    assert len(ASKED) >= 8
    before = asked(workspace)
    assert mean(compute_ndcg(ASKED, before).values()) > GOOD
    former = workspace.catalog.generations.serving(workspace.id)
    assert former is not None
    with e5_server() as url:
        model = {"provider": "ollama", "embedding_model": "multilingual-e5-small"}
        answer_body = settings(workspace, **model, base_url=url, dimensions=E5_DIMENSIONS)
        assert answer_body["pending_model"]["embedding_model"] == "multilingual-e5-small"
        assert answer_body["provider"] == "local"
        workspace.sync()
        assert asked(workspace) == before, "it waits, whatever else is indexed"

        reindex = workspace.send("POST", "/rag/reindex", {"scope": "workspace"}, by=ADMIN)
        assert reindex.status_code == 202, reindex.text
        assert asked(workspace) == before, "the former build answers until the new one is complete"
        meanwhile = asked_during(workspace, workspace.sync)
        serving = workspace.catalog.generations.serving(workspace.id)
        assert serving is not None
        assert serving.number > former.number
        assert "multilingual-e5-small" in serving.embedder_id
        after = asked(workspace)
        assert mean(compute_ndcg(ASKED, after).values()) > GOOD
        assert after != before
        assert meanwhile
        first = ASKED[0].id
        assert {*meanwhile} <= {before[first], after[first]}, "an answer of two models, or none"


def asked_during(workspace: Workspace, work: Any) -> list[tuple[Found, ...]]:
    """Repeat a question while a function runs; return the answers."""
    answers: list[tuple[Found, ...]] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            answers.append(asked(workspace, ASKED[:1])[ASKED[0].id])

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        work()
    finally:
        stop.set()
        asking.join()
    return answers
