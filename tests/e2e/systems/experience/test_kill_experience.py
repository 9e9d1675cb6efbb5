"""kill -9 in checkpoints, in the syncs that embed and merge, in manual merges, and in retractions.

Every tenant captures the same entries of three projects, and is killed at another moment. Then it
must answer like a tenant that was not disturbed. An embedding server counts that no text was paid
for twice, except those in flight at the kill.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from rag_assets.cli.session import Session
from rag_assets.privacy.masker import get_masker
from rag_assets.systems.experience.model import CheckpointDraft, EntryDraft, ProjectDraft
from rag_assets.systems.experience.service import Experience
from tests.e2e.killing import KILLED, ForkServer, Outcome, fork_server, kills
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import Installation
from tests.newer_rules import NO_WAIT, TESTED_BOUNDS

KILLS = kills(2)
"""In each kind of work, at moments all over its way."""
SUCCESSES = {"checkpoint": [3, 2], "sync": [3, 2], "merge": [3], "retract": [2, 2]}
PROJECTS = [UUID(int=number) for number in range(1, 4)]
PROBLEMS = [
    "The build fails, cosine 0.30",
    "The build  FAILS, cosine 0.30",
    "The page is blank",
    "Nothing is shown, cosine 0.95",
]
"""The second is equal to the first, and the last near the one before it."""
BOUNDED = {TESTED_BOUNDS: "openai-compatible/counting"}


def cosine_of(text: str) -> float | None:
    found = re.search(r"cosine (\d\.\d+)", text)
    return float(found[1]) if found else None


@pytest.fixture(scope="module")
def embeddings() -> Iterator[EmbeddingServer]:
    with embedding_server(cosine=cosine_of) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        yield server


@pytest.fixture(scope="module")
def server(shared_installation: Installation, embeddings: EmbeddingServer) -> Iterator[ForkServer]:
    allowed = {"RAG_ASSETS_PRIVATE_ENDPOINTS": "127.0.0.1"}
    with fork_server(shared_installation.environment | allowed) as started:
        yield started


@pytest.fixture(scope="module")
def reader(shared_installation: Installation) -> Session:
    return shared_installation.session()


@dataclass
class Learned:
    """A tenant in which one kind of work is killed.

    Attributes:
        work: the kind of work.
        number: of the moment.
        reader: inspects the result, over the same connections for all tenants.
    """

    work: str
    number: int
    server: ForkServer
    installation: Installation
    embeddings: EmbeddingServer
    reader: Session

    @property
    def id(self) -> str:
        return f"{self.work}-{self.number}"

    @property
    def experience(self) -> Experience:
        return Experience(self.reader.catalog, get_masker(self.reader.settings.local))

    def prepare(self) -> None:
        source = {"name": "experience", "type": "experience"}
        embedder = {
            "provider": "openai-compatible",
            "model": "counting",
            "dimensions": self.embeddings.dimensions,
            "base_url": self.embeddings.url,
        }
        self.installation.add_tenant(
            self.id, profile="experience", embedder=embedder, sources=[source]
        )
        assert self.run("sync", self.id).code == 0
        for project in PROJECTS:
            self.experience.put_project(self.id, project, ProjectDraft(name=f"P{project.int}"))
            for problem in PROBLEMS[: 1 + project.int]:
                draft = EntryDraft(
                    entry_type="failure_solution",
                    project_id=project,
                    agent_type="tester",
                    failure_description=f"{problem} in {self.id}",
                    solution_steps="Mend it.",
                    success_verified=True,
                )
                self.experience.capture(self.id, draft, by="test")
        if self.work != "checkpoint":
            self.checkpoint()
        if self.work in {"merge", "retract"}:
            assert self.run("sync", self.id).code == 0

    def checkpoint(self) -> None:
        draft = CheckpointDraft(checkpoint_type="manual")
        self.experience.request_checkpoint(self.id, draft, by="test")

    @property
    def command(self) -> tuple[str, ...]:
        """Return the command that is killed."""
        match self.work:
            case "checkpoint":
                return ("experience", "checkpoint", self.id)
            case "merge":
                one, other = sorted(self.shown(), key=lambda one: str(one["problem"]))
                return ("experience", "merge", self.id, one["id"], other["id"], "--yes")
            case "retract":
                return ("experience", "retract", self.id, "--project", str(PROJECTS[0]))
        return ("sync", self.id)

    def run(self, *arguments: str, **options: Any) -> Outcome:
        return self.server.run(*arguments, **options, **{NO_WAIT: "1"}, **BOUNDED)

    def finish(self) -> None:
        """Repeat the killed work, and complete all other work."""
        if self.work == "merge" and len(self.shown()) == 1:
            pass
        elif self.work != "sync":
            done = self.run(*self.command)
            assert done.code == 0, done.err
        done = self.run("sync", self.id)
        assert done.code == 0, done.err

    def shown(self) -> list[dict[str, Any]]:
        done = self.run("experience", "patterns", self.id, "--json")
        assert done.code == 0, done.err
        return list(json.loads(done.out)["patterns"])

    def patterns(self) -> list[tuple[str, int, tuple[UUID, ...]]]:
        return sorted(
            (
                " ".join(one["problem"].removesuffix(self.id).casefold().split()),
                one["success_count"],
                tuple(map(UUID, one["projects"])),
            )
            for one in self.shown()
        )

    def answered(self) -> dict[str, int]:
        """Return how often each text of the tenant was answered, and thus paid for."""
        paid = self.embeddings.answered.items()
        return {text: times for text, times in paid if re.search(rf"\b{self.id}\b", text)}


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("work", ["checkpoint", "sync", "merge", "retract"])
def test_a_kill_changes_nothing_that_is_answered(
    work: str,
    server: ForkServer,
    embeddings: EmbeddingServer,
    shared_installation: Installation,
    reader: Session,
) -> None:
    def tenant(number: int) -> Learned:
        made = Learned(work, number, server, shared_installation, embeddings, reader)
        made.prepare()
        return made

    undisturbed = tenant(0)
    counted = undisturbed.run(*undisturbed.command, kill_before=0)
    assert counted.code == 0, counted.err
    undisturbed.finish()
    expected = undisturbed.patterns()
    assert [count for _, count, _ in expected] == SUCCESSES[work]
    texts = len(undisturbed.answered())
    assert set(undisturbed.answered().values()) == {1}
    boundaries = counted.boundaries
    moments = [max(1, len(boundaries) * number // (KILLS + 1)) for number in range(1, KILLS + 1)]
    # After its entries are found, the checkpoint must still be recorded as completed.
    moments += [at for at, name in enumerate(boundaries, 1) if name.endswith(".checkpoints")]
    killed = 0
    for number, before in enumerate(moments, 1):
        disturbed = tenant(number)
        killed += disturbed.run(*disturbed.command, kill_before=before).code == KILLED
        disturbed.finish()
        assert disturbed.patterns() == expected
        paid = disturbed.answered()
        assert len(paid) == texts
        # Only the write itself comes between a provider's response and its storage.
        under_way = boundaries[before - 1].startswith("lake ")
        assert max(paid.values()) == 1 or under_way, boundaries[before - 1]
        done = disturbed.experience.checkpoints.list_latest(disturbed.id, 10)
        assert {one.state for one in done} == {"done"}
    assert killed == len(moments)
