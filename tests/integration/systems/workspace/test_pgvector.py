"""Vectors of a workspace in pgvector: moves in both directions, outages, drift, removal."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from itertools import cycle
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from rag_assets.checks.vectors_beside import build_verdict
from rag_assets.cli.session import Session
from rag_assets.pipeline.removal import delete_strays
from rag_assets.pipeline.repair import repair_tenant
from rag_assets.pipeline.separate_vectors import (
    compare_separate_vectors,
    fill_vectors,
)
from rag_assets.search.model import Caller, Filters, Hit, SearchRequest
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.index.pgvector.tables import PgVectors
from rag_assets.systems.workspace.settings import FOLLOW_UP
from tests.background import run_in_background
from tests.driving import Driver
from tests.installation import FAST, Installation

WORDS = ["valve", "pump", "boiler", "gauge", "filter", "hose", "nozzle", "seal"]
PAGES, EDITED = 150, 8
"""Pages beside those of the words, and pages that are edited, while vectors move."""
TOP, ASKING = 5, 4
SWAPPED = (
    "UPDATE BUILD.rag_chunks SET entry_id = 'x' || entry_id WHERE source = 'public';"
    "UPDATE BUILD.rag_chunks AS c SET entry_id = substr(o.entry_id, 2)"
    " FROM BUILD.rag_chunks AS o WHERE c.source = 'public' AND o.uri = CASE c.uri"
    " WHEN 'public/valve.md' THEN 'public/boiler.md'"
    " WHEN 'public/boiler.md' THEN 'public/valve.md' ELSE c.uri END"
)


class Workspace:
    """A workspace of small pages, in two access scopes."""

    def __init__(self, installation: Installation, driver: Driver) -> None:
        self.id = f"pg-{uuid4().hex[:8]}"
        self.installation, self.driver = installation, driver
        self.folder = installation.home.parent / "sources" / self.id
        sources = []
        for scope in ("public", "board"):
            (self.folder / scope).mkdir(parents=True)
            root = str(self.folder / scope)
            sources.append({"name": scope, "root": root, "scope": scope})
        for number, word in enumerate(WORDS):
            self.page(word, f"The {word} is number {number}.", "board" if number % 2 else "public")
        self.config: dict[str, Any] = {**FAST, "profile": "workspace", "sources": sources}
        installation.add_tenant(self.id, **self.config)
        driver.sync(self.id)

    @property
    def session(self) -> Session:
        return self.driver.session

    @property
    def vectors(self) -> PgVectors:
        assert self.session.store.vectors is not None
        return self.session.store.vectors

    @property
    def serving(self) -> Generation:
        found = self.session.catalog.generations.serving(self.id)
        assert found is not None
        return found

    def page(self, name: str, text: str, scope: str = "public") -> None:
        (self.folder / scope / f"{name}.md").write_text(f"# {name}\n\n{text}\n")

    def choose(self, backend: str) -> None:
        """Choose the vector back end, as the application's settings do, and sync."""
        self.installation.configure(self.id, workspace={"vector_backend": backend})
        self.driver.sync(self.id)

    def ask(self, query: str, **options: Any) -> Any:
        caller = Caller(principals=options.pop("principals", ()))
        options = {"top_k": 50, **options}
        request = SearchRequest(query=query, caller=caller, mode="knn", **options)
        return self.installation.retriever.search(self.id, request)

    def found(self, query: str, **options: Any) -> list[tuple[str, float]]:
        return [(hit.uri, hit.cosine) for hit in self.ask(query, **options).hits]

    def sql(self, statement: str) -> None:
        with psycopg.connect(self.session.endpoints.database_url, autocommit=True) as connection:
            connection.execute(statement.replace("BUILD", self.schema))  # type: ignore[arg-type]

    @property
    def schema(self) -> str:
        with self.driver.locked(self.id) as ctx:
            return self.vectors.schema(ctx.owner(self.serving))


@pytest.fixture
def workspace(shared_installation: Installation, driver: Driver) -> Iterator[Workspace]:
    made = Workspace(shared_installation, driver)
    yield made
    made.vectors.drop_tenant(made.id)


def test_the_same_is_found_there_and_back(workspace: Workspace) -> None:
    questions = [*WORDS, "number 3", "what is number seven"]
    ways: list[dict[str, Any]] = [
        {},
        {"principals": ("board",)},
        {"filters": Filters(paths=("board",))},
        {"principals": ("ann",), "filters": Filters(paths=("public/pump.md", "public/valve.md"))},
    ]
    workspace.session.catalog.access.grant(
        workspace.session.catalog.tenants.get(workspace.id).ref, "board", ["board"]
    )
    before = [workspace.found(question, **way) for question in questions for way in ways]
    assert any(before)
    workspace.choose("pgvector")
    assert workspace.serving.vectors_beside == "answering"
    there = [workspace.found(question, **way) for question in questions for way in ways]
    for found, expected in zip(there, before, strict=True):
        # Both stores add the same products in a different order.
        assert dict(found) == pytest.approx(dict(expected), abs=1e-5)
    assert not any(workspace.ask(question).degraded for question in questions)
    workspace.choose("elasticsearch")
    assert workspace.serving.vectors_beside is None
    assert workspace.vectors.schemas(workspace.id) == []
    back = [workspace.found(question, **way) for question in questions for way in ways]
    assert back == before


def test_nothing_is_embedded_for_a_move(workspace: Workspace) -> None:
    counts = workspace.driver.sync(workspace.id)
    workspace.installation.configure(workspace.id, workspace={"vector_backend": "pgvector"})
    counts = workspace.driver.sync(workspace.id)
    assert counts["embedded"] == 0
    with workspace.driver.locked(workspace.id) as ctx:
        owner = ctx.owner(workspace.serving)
    assert sum(count.count for count in workspace.vectors.iter_version_counts(owner)) == len(WORDS)


def test_edits_deletions_and_scopes_reach_it(workspace: Workspace) -> None:
    workspace.choose("pgvector")
    workspace.page("valve", "The valve is made of brass now.")
    workspace.page("tap", "A tap is new here.")
    (workspace.folder / "public" / "boiler.md").unlink()
    workspace.driver.sync(workspace.id)
    uris = {uri for uri, _ in workspace.found("valve")}
    assert {"public/tap.md", "public/valve.md"} <= uris
    assert "public/boiler.md" not in uris
    assert compared(workspace) == set()
    assert workspace.serving.vectors_beside == "answering"


def compared(workspace: Workspace) -> set[str]:
    with workspace.driver.locked(workspace.id) as ctx:
        [state] = compare_separate_vectors(ctx)
        assert build_verdict([state]).passed is state.is_healthy
        return set(state.differing)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM BUILD.rag_chunks WHERE uri = 'public/valve.md'",
        "UPDATE BUILD.rag_chunks SET access_scope = 'public' WHERE access_scope = 'board'",
        "UPDATE BUILD.rag_chunks SET index_key = 'other' WHERE uri = 'public/valve.md'",
        # The number of entries is right, but one is replaced, or two have swapped ids.
        "UPDATE BUILD.rag_chunks SET entry_id = repeat('0', 32) WHERE uri = 'public/valve.md'",
        SWAPPED,
        "TRUNCATE BUILD.rag_vectors",
        "DROP SCHEMA BUILD CASCADE",
    ],
)
def test_damage_is_found_and_repaired(workspace: Workspace, damage: str) -> None:
    workspace.choose("pgvector")
    assert compared(workspace) == set()
    workspace.sql(damage)
    assert compared(workspace)
    with workspace.driver.locked(workspace.id) as ctx:
        done = repair_tenant(ctx)
        assert done.vectors_beside == 1
        assert not done.is_healthy
    assert compared(workspace) == set()
    assert workspace.serving.vectors_beside == "answering"
    assert workspace.found("valve")


def test_reads_do_not_move_while_one_id_is_another(workspace: Workspace) -> None:
    workspace.choose("pgvector")
    expected = workspace.found("valve")
    workspace.sql("UPDATE BUILD.rag_chunks SET entry_id = 'x' WHERE uri = 'public/valve.md'")
    with workspace.driver.locked(workspace.id) as ctx:
        generation = ctx.catalog.generations.set_vectors_state(
            ctx.ref, workspace.serving, "filling"
        )
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(PgVectors, "write_rows", lambda *_: 0)
            patched.setattr(PgVectors, "keep_only", lambda *_: None)
            left = fill_vectors(ctx, generation, workspace.vectors)
        assert left.vectors_beside == "filling", "as many entries, and one of them is another"
        assert fill_vectors(ctx, left, workspace.vectors).vectors_beside == "answering"
    assert compared(workspace) == set()
    assert workspace.found("valve") == expected


def test_tables_of_a_former_version_are_made_anew_without_an_embedding(
    workspace: Workspace,
) -> None:
    workspace.choose("pgvector")
    expected = workspace.found("valve")
    workspace.sql("ALTER TABLE BUILD.rag_chunks DROP COLUMN ordinal, DROP COLUMN within")
    answer = workspace.ask("valve")
    assert answer.degraded == ("pgvector",), "the index answers"
    assert len(answer.hits) == len(expected)
    assert len(compared(workspace)) == len(WORDS), "it is drift"
    embedder = workspace.serving.embedder_id
    with workspace.driver.locked(workspace.id) as ctx:
        before = ctx.catalog.usage.sum([workspace.id], date.min)
        assert repair_tenant(ctx).vectors_beside == 1
        assert ctx.catalog.usage.sum([workspace.id], date.min) == before
    assert workspace.serving.embedder_id == embedder
    assert compared(workspace) == set()
    assert workspace.serving.vectors_beside == "answering"
    assert workspace.ask("valve").degraded == ()
    assert workspace.found("valve") == expected


def test_a_write_to_tables_of_a_former_version_has_them_made_anew(workspace: Workspace) -> None:
    workspace.choose("pgvector")
    workspace.sql("ALTER TABLE BUILD.rag_chunks DROP COLUMN ordinal, DROP COLUMN within")
    workspace.page("tap", "A tap is new here.")
    workspace.driver.sync(workspace.id)
    assert workspace.serving.vectors_beside == "answering"
    assert compared(workspace) == set()
    assert "public/tap.md" in {uri for uri, _ in workspace.found("tap")}


def test_a_vector_of_another_length_is_found_and_repaired(workspace: Workspace) -> None:
    workspace.choose("pgvector")
    workspace.sql("UPDATE BUILD.rag_vectors SET embedding = embedding * embedding")
    with workspace.driver.locked(workspace.id) as ctx:
        [state] = compare_separate_vectors(ctx)
        assert state.unsound == len(WORDS)
        repair_tenant(ctx)
        [state] = compare_separate_vectors(ctx)
        assert state.is_healthy


def test_while_it_is_away_the_index_answers(workspace: Workspace) -> None:
    before = workspace.found("valve")
    workspace.choose("pgvector")
    workspace.sql("ALTER SCHEMA BUILD RENAME TO away")
    try:
        answer = workspace.ask("valve")
        assert answer.degraded == ("pgvector",)
        found = {hit.uri: hit.cosine for hit in answer.hits}
        assert found == pytest.approx(dict(before), abs=1e-5)
    finally:
        workspace.sql("ALTER SCHEMA away RENAME TO BUILD")
    # Nothing depends on what the vector server remembers.
    workspace.sql("DROP SCHEMA BUILD CASCADE")
    workspace.page("tap", "A tap is new here.")
    workspace.driver.sync(workspace.id)
    assert workspace.serving.vectors_beside == "answering"
    assert compared(workspace) == set()
    assert "public/tap.md" in {uri for uri, _ in workspace.found("tap")}


@pytest.mark.long
def test_a_missed_write_ends_its_answers_until_it_has_caught_up(workspace: Workspace) -> None:
    workspace.choose("pgvector")
    nowhere = PgVectors("postgresql://127.0.0.1:9/nowhere", "rag")
    with workspace.driver.locked(workspace.id) as ctx:
        away = replace(ctx, store=replace(ctx.store, vectors=nowhere))
        writer = away.writer(workspace.serving)
        writer.set_scopes(
            workspace.serving.index_name,
            away.owner(workspace.serving),
            {"nothing": "public"},
            guard=lambda: None,
        )
        assert workspace.serving.vectors_beside == "filling"
        assert workspace.serving.vectors_retry_at is not None
        # A run's follow-up with an unavailable server changes nothing and does not fail.
        FOLLOW_UP.finish(away, workspace.serving)
        assert workspace.serving.vectors_beside == "filling"
        assert FOLLOW_UP.unfinished(ctx.catalog, workspace.id) is None, (
            "it is left alone for a while"
        )
        FOLLOW_UP.finish(ctx, workspace.serving)
    assert workspace.serving.vectors_beside == "answering"
    nowhere.close()


@dataclass
class Asking:
    """Threads that repeat searches, and one that edits other documents.

    Attributes:
        expected: the hits of each question, in their order.
        faults: errors and unexpected answers.
        answered: numbers of answers, by the back end that had the vectors.
    """

    workspace: Workspace
    expected: Mapping[str, Sequence[tuple[str, float]]]
    faults: list[object] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)

    def meanwhile(self) -> AbstractContextManager[None]:
        """Search and edit within the block."""
        asking = (partial(self._ask, number) for number in range(ASKING))
        return run_in_background(self._stop, *asking, self._edit)

    def _ask(self, number: int) -> None:
        chance = random.Random(number)
        while not self._stop.is_set():
            try:
                self._ask_once(chance.choice([*self.expected]))
            except Exception as error:
                self.faults.append(error)

    def _ask_once(self, question: str) -> None:
        answer = self.workspace.ask(question, top_k=TOP)
        self.answered[str(self.workspace.serving.vectors_beside)] += 1
        if answer.degraded or not is_same(answer.hits, self.expected[question]):
            hits = [(hit.uri, hit.cosine) for hit in answer.hits]
            self.faults.append((question, answer.degraded, hits, self.expected[question]))

    def _edit(self) -> None:
        editions = ((edition, number) for edition in cycle("ba") for number in range(EDITED))
        for edition, number in editions:
            if self._stop.wait(0.05):
                return
            write_edition(self.workspace, number, edition)


@pytest.mark.long
def test_no_answer_fails_is_mixed_or_short_while_vectors_move(workspace: Workspace) -> None:
    for number in range(PAGES):
        workspace.page(f"kept-{number}", f"What is kept here is number {number}.")
    expected = answers_beside_edits(workspace)
    assert len({tuple(uri for uri, _ in hits) for hits in expected.values()}) >= 8
    asking, done = Asking(workspace, expected), Counter[str]()
    with asking.meanwhile():
        for backend in ("pgvector", "elasticsearch") * 2:
            workspace.choose(backend)
            done += workspace.driver.sync(workspace.id)
    assert asking.faults == []
    assert asking.answered["answering"], "some were answered by pgvector"
    assert asking.answered["None"], "and some without it"
    assert done["upserted"], "other documents were edited meanwhile"


def write_edition(workspace: Workspace, number: int, edition: str) -> None:
    """Replace an edited page atomically."""
    path = workspace.folder / "public" / f"edited-{number}.md"
    draft = workspace.folder / f"draft-{number}"
    draft.write_text(f"# Edited {number}\n\nThis is edition {edition} of {number}.\n")
    draft.replace(path)


def answers_beside_edits(workspace: Workspace) -> dict[str, list[tuple[str, float]]]:
    """Return questions whose first hits do not depend on the editions of edited pages."""
    found = []
    for edition in "ab":
        for number in range(EDITED):
            write_edition(workspace, number, edition)
        workspace.driver.sync(workspace.id)
        every = (*WORDS, *(f"question {number}" for number in range(40)))
        found.append({one: workspace.ask(one, top_k=TOP).hits for one in every})
    first, second = found
    return {
        question: [(hit.uri, hit.cosine) for hit in hits]
        for question, hits in first.items()
        if not any("edited" in hit.uri for hit in (*hits, *second[question]))
    }


def is_same(hits: Sequence[Hit], expected: Sequence[tuple[str, float]]) -> bool:
    """Return whether hits are as expected, in the same order."""
    return [hit.uri for hit in hits] == [uri for uri, _ in expected] and [
        hit.cosine for hit in hits
    ] == pytest.approx([score for _, score in expected], abs=1e-4)


def test_nothing_stays_of_a_removed_tenant(workspace: Workspace) -> None:
    workspace.choose("pgvector")
    assert len(workspace.vectors.schemas(workspace.id)) == 1
    result = workspace.installation.cli("tenants", "remove", workspace.id, "--yes", "--json")
    assert result.json["complete"]
    assert workspace.vectors.schemas(workspace.id) == []


def test_tables_that_no_build_has_are_swept(workspace: Workspace) -> None:
    workspace.choose("pgvector")
    stray = f"{workspace.schema}9"
    workspace.sql(f"CREATE SCHEMA {stray}")
    session = workspace.session
    delete_strays(session.catalog, session.lake, session.store, open_blobs(session.settings))
    assert workspace.vectors.schemas(workspace.id) == [workspace.schema]
