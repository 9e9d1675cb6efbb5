"""Vectors move to pgvector and back during searches over HTTP and pushes of records."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final

import httpx
import pytest

from rag_assets.storage.catalog.builds.generations import Generation
from tests.background import run_in_background
from tests.driving import Driver, tenant_named_after
from tests.installation import Installation
from tests.integration.systems.workspace.marked_tree import (
    ADMIN,
    Person,
    Workspace,
    served,
    workspace_of,
)

pytestmark = pytest.mark.long

PEOPLE: Final = (
    Person("ada"),
    Person("bob", groups=("crew",)),
    Person("eve", groups=("crew", "board")),
    Person("gil", "guest", ("board",)),
)
READERS: Final = ("members", "group:crew", "group:board", "ada")
MODES: Final = ("knn", "hybrid", "text")
PAGES, EDITED, QUESTIONS, TOP = 160, 8, 30, 5
ASKING: Final = 6
"""Requests that are under way at once, of each of two event loops."""
Key = tuple[str, str, str]
"""The name of who asks, the mode, the question."""
Found = Sequence[tuple[str, float]]


@pytest.fixture
def workspace(
    request: pytest.FixtureRequest, shared_installation: Installation, driver: Driver
) -> Iterator[Workspace]:
    with workspace_of(shared_installation, driver, tenant_named_after(request)) as made:
        for reader in READERS:
            made.put(f"of-{reader.removeprefix('group:')}", inherit=False, read=[reader])
        made.put("edited", inherit=False, read=["zoe"])
        pages = [f"of-{reader.removeprefix('group:')}" for reader in READERS]
        # Each text has a unique word: shared words would be ranked by chance, which edits change.
        texts = [{f"n{n}": f"{word_of(n)}."} for n in range(PAGES)]
        for number, text in enumerate(texts):
            made.push(text, kind="comment", on=pages[number % len(pages)])
        yield made
        vectors = driver.session.store.vectors
        assert vectors is not None
        vectors.drop_tenant(made.id)


def word_of(number: int) -> str:
    """Return the word of a record."""
    return "".join(random.Random(f"word {number}").choices("bcdfghklmnprstvwz", k=9))


def edit(workspace: Workspace, number: int, edition: str) -> None:
    """Push a record that no caller reads, so that it cannot replace a candidate."""
    text = {f"edited-{number}": f"Edition {edition} of {number}."}
    workspace.push(text, kind="comment", on="edited")


def request_of(workspace: Workspace, person: Person, mode: str, question: str) -> dict[str, Any]:
    token = {"Authorization": f"Bearer {workspace.token(person)}"}
    return {"json": {"query": question, "mode": mode, "top_k": TOP}, "headers": token}


def found_in(answer: httpx.Response) -> Found:
    return [(hit["source_id"], hit["score"]) for hit in answer.json()["hits"]]


def expected_answers(workspace: Workspace, origin: str) -> dict[Key, Found]:
    """Return the answers to all questions before vectors move."""
    for number in range(EDITED):
        edit(workspace, number, "a")
    workspace.sync()
    with httpx.Client(base_url=origin, timeout=60) as client:
        return {
            (person.name, mode, question): found_in(
                client.post("/rag/query", **request_of(workspace, person, mode, question))
            )
            for person in PEOPLE
            for mode in MODES
            for question in map(word_of, range(QUESTIONS))
        }


@dataclass
class Asking:
    """Callers that repeat questions with known answers, and one that pushes records.

    Attributes:
        expected: the hits of each question.
        faults: errors, refusals, degraded and unexpected answers.
        answered: numbers of answers, by the back end that had the vectors.
    """

    workspace: Workspace
    origin: str
    expected: Mapping[Key, Found]
    faults: list[object] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    pushed: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def meanwhile(self) -> AbstractContextManager[None]:
        """Search and push within the block."""
        loops = (partial(self._loop, seed) for seed in range(2))
        return run_in_background(self._stop, *loops, self._push)

    def _loop(self, seed: int) -> None:
        async def all_of_them() -> None:
            async with httpx.AsyncClient(base_url=self.origin, timeout=60) as client:
                asking = (self._ask(client, random.Random(f"{seed} {n}")) for n in range(ASKING))
                await asyncio.gather(*asking)

        try:
            asyncio.run(all_of_them())
        except Exception as error:
            self.faults.append(error)

    async def _ask(self, client: httpx.AsyncClient, chance: random.Random) -> None:
        people = {person.name: person for person in PEOPLE}
        keys = [*self.expected]
        while not self._stop.is_set():
            key = chance.choice(keys)
            name, mode, question = key
            asked = request_of(self.workspace, people[name], mode, question)
            answer = await client.post("/rag/query", **asked)
            if answer.status_code != 200 or answer.json().get("degraded"):
                self.faults.append((key, answer.status_code, answer.text))
            elif not is_same(found_in(answer), self.expected[key]):
                self.faults.append((key, found_in(answer), self.expected[key]))
            self.answered[str(serving(self.workspace).vectors_beside)] += 1

    def _push(self) -> None:
        try:
            for number in count():
                if self._stop.wait(0.05):
                    return
                edit(self.workspace, number % EDITED, "ba"[number // EDITED % 2])
                self.pushed += 1
        except Exception as error:
            self.faults.append(error)


def is_same(found: Found, expected: Found) -> bool:
    """Return whether hits are as expected, in the same order."""
    return [id_ for id_, _ in found] == [id_ for id_, _ in expected] and [
        score for _, score in found
    ] == pytest.approx([score for _, score in expected], abs=1e-4)


def serving(workspace: Workspace) -> Generation:
    found = workspace.catalog.generations.serving(workspace.id)
    assert found is not None
    return found


def choose(workspace: Workspace, backend: str) -> None:
    answer = workspace.send("PATCH", "/rag/settings", {"vector_backend": backend}, by=ADMIN)
    assert answer.status_code == 200, answer.text


@pytest.mark.nightly
def test_no_answer_fails_is_mixed_or_short_for_any_reader(
    workspace: Workspace, shared_installation: Installation
) -> None:
    workspace.sync()
    with served(shared_installation.session()) as origin:
        expected = expected_answers(workspace, origin)
        assert {name for name, _, _ in expected} == {person.name for person in PEOPLE}
        assert {mode for (_, mode, _), hits in expected.items() if hits} == {*MODES}
        asking, done = Asking(workspace, origin, expected), Counter[str]()
        with asking.meanwhile():
            for backend in ("pgvector", "elasticsearch") * 3:
                choose(workspace, backend)
                done += workspace.sync()
                wanted = "answering" if backend == "pgvector" else None
                assert serving(workspace).vectors_beside == wanted
                time.sleep(0.5)
        assert asking.faults[:3] == []
    assert asking.answered["answering"], "some were answered by pgvector"
    assert asking.answered["None"], "and some without it"
    assert asking.pushed > EDITED
    assert done["upserted"], "other records were indexed meanwhile"
