"""kill -9 in captures, checkpoints, the syncs that embed them, and retractions; then a sync.

Every tenant is captured the same entries of three projects, and killed at another moment. What it
answers then is what one that was never disturbed answers, and the entries that are found were
embedded once: the deterministic embedder is counted by the vectors in the lake.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from rag_assets.cli.commands.session import Session
from rag_assets.privacy.masker import masker_of
from rag_assets.systems.experience.model import CheckpointDraft, EntryDraft, ProjectDraft
from rag_assets.systems.experience.service import Experience
from tests.e2e.killing import KILLED, ForkServer, Outcome, fork_server, kills
from tests.installation import FAST, Installation
from tests.newer_rules import NO_WAIT

KILLS = kills(3)
"""In each kind of work, at moments all over its way."""
PROJECTS = [UUID(int=number) for number in range(1, 4)]
PROBLEMS = ["The build fails", "The build  FAILS", "The queue overflows", "The page is blank"]


@pytest.fixture(scope="module")
def server(shared_installation: Installation) -> Iterator[ForkServer]:
    with fork_server(shared_installation.environment) as started:
        yield started


@pytest.fixture(scope="module")
def reader(shared_installation: Installation) -> Session:
    return shared_installation.session()


@dataclass
class Learned:
    """A tenant of which one kind of work is killed.

    Attributes:
        work: which.
        number: of the moment.
        reader: looks at what is left, with the same connections for all tenants.
    """

    work: str
    number: int
    server: ForkServer
    installation: Installation
    reader: Session

    @property
    def id(self) -> str:
        return f"{self.work}-{self.number}"

    @property
    def experience(self) -> Experience:
        return Experience(self.reader.catalog, masker_of(self.reader.settings.local))

    def prepare(self) -> None:
        source = {"name": "experience", "type": "experience"}
        self.installation.add_tenant(self.id, profile="experience", **FAST, sources=[source])
        assert self.run("sync", self.id).code == 0
        for project in PROJECTS:
            self.experience.put_project(self.id, project, ProjectDraft(name=f"P{project.int}"))
            for problem in PROBLEMS[: 1 + project.int]:
                draft = EntryDraft(
                    entry_type="failure_solution",
                    project_id=project,
                    agent_type="tester",
                    failure_description=problem,
                    solution_steps="Mend it.",
                    success_verified=True,
                )
                self.experience.capture(self.id, draft, by="test")
        if self.work != "checkpoint":
            self.checkpoint()
        if self.work == "retract":
            assert self.run("sync", self.id).code == 0

    def checkpoint(self) -> None:
        draft = CheckpointDraft(checkpoint_type="manual")
        self.experience.request_checkpoint(self.id, draft, by="test")

    @property
    def command(self) -> tuple[str, ...]:
        """What is killed."""
        match self.work:
            case "checkpoint":
                return ("experience", "checkpoint", self.id)
            case "retract":
                return ("experience", "retract", self.id, "--project", str(PROJECTS[0]))
        return ("sync", self.id)

    def run(self, *arguments: str, **options: Any) -> Outcome:
        return self.server.run(*arguments, **options, **{NO_WAIT: "1"})

    def finish(self) -> None:
        """Do again what was killed, and bring everything to an end."""
        if self.work != "sync":
            done = self.run(*self.command)
            assert done.code == 0, done.err
        done = self.run("sync", self.id)
        assert done.code == 0, done.err

    def patterns(self) -> list[tuple[str, int, tuple[UUID, ...]]]:
        done = self.run("experience", "patterns", self.id, "--json")
        assert done.code == 0, done.err
        return sorted(
            (
                " ".join(one["problem"].casefold().split()),
                one["success_count"],
                tuple(map(UUID, one["projects"])),
            )
            for one in json.loads(done.out)["patterns"]
        )

    def vectors(self) -> int:
        """Rows in the lake, of which there is one for each text that was embedded."""
        ctx = self.installation.context(self.id, self.reader)
        hashes = ctx.lake.vector_hashes(ctx.embedder.embedder_id)
        return len(ctx.lake.stored_vectors(ctx.embedder.embedder_id, hashes))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("work", ["checkpoint", "sync", "retract"])
def test_a_kill_changes_nothing_that_is_answered(
    work: str, server: ForkServer, shared_installation: Installation, reader: Session
) -> None:
    def tenant(number: int) -> Learned:
        made = Learned(work, number, server, shared_installation, reader)
        made.prepare()
        return made

    undisturbed = tenant(0)
    counted = undisturbed.run(*undisturbed.command, kill_before=0)
    assert counted.code == 0, counted.err
    undisturbed.finish()
    expected = undisturbed.patterns()
    assert [count for _, count, _ in expected] == ([3, 1, 2] if work != "retract" else [2, 1, 2])
    total = len(counted.boundaries)
    assert total
    killed = 0
    for moment in range(1, KILLS + 1):
        disturbed = tenant(moment)
        before = max(1, total * moment // (KILLS + 1))
        killed += disturbed.run(*disturbed.command, kill_before=before).code == KILLED
        disturbed.finish()
        assert disturbed.patterns() == expected
        assert disturbed.vectors() == undisturbed.vectors()
        done = disturbed.experience.checkpoints.latest(disturbed.id, 10)
        assert {one.state for one in done} == {"done"}
    assert killed == KILLS
