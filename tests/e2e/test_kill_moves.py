"""kill -9 while a build is published, rolled back or discarded; then a sync, and the command again.

Two builds of one tenant take turns, so no round makes a build: `publish` and `rollback` switch
between them. Each command is killed at each kind of write and at random moments. The tenant must
always have exactly one serving build. The next sync completes a command that has started its work;
otherwise the same command leads to the undisturbed result.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from time import monotonic

import dagster as dg
import pytest

from rag_assets.cli import session as sessions
from rag_assets.pipeline.drift import inspect_index
from rag_assets.pipeline.generations import is_alias_right
from rag_assets.pipeline.upkeep import drop_old_generations
from rag_assets.resources.own_runs import PARTITION_TAG
from rag_assets.resources.tenant_lock import fail_abandoned_runs
from rag_assets.storage.catalog.builds.generations import Generation
from tests.driving import Driver
from tests.e2e.killing import KILLED, ForkServer, Outcome, fork_server, kills
from tests.installation import FAST, Installation

OTHER = {"chunker": {"chunker": "heading", "max_tokens": 40, "overlap": 0}}
RANDOM = kills(2)
SEED = 11
TEXT = "Every steward on duty writes down why. " * 8
COMMANDS = {
    "publish": ("publish",),
    "rollback": ("rollback", "--to", "1", "--reason", "a trial"),
    "rollback --now": ("rollback", "--to", "1", "--reason", "a trial", "--now"),
}


@pytest.fixture(scope="module")
def server(shared_installation: Installation) -> Iterator[ForkServer]:
    with fork_server(shared_installation.environment) as started:
        yield started


@dataclass
class Moved:
    """A tenant with two complete builds; the second one matches the configuration."""

    id: str
    folder: Path
    server: ForkServer
    installation: Installation
    driver: Driver
    instance: dg.DagsterInstance
    killed: list[str] = field(default_factory=list)

    @property
    def builds(self) -> dict[int, Generation]:
        return {g.number: g for g in self.driver.session.catalog.generations.live(self.id)}

    @property
    def serving(self) -> int:
        [number] = [number for number, g in self.builds.items() if g.state == "SERVING"]
        return number

    def run(self, command: str, **kill: float) -> Outcome:
        name, *options = COMMANDS[command]
        return self.server.run("generations", name, self.id, *options, "--json", **kill)  # type: ignore[arg-type]

    def go(self, command: str) -> None:
        """Run a command undisturbed, and verify its result."""
        done = self.run(command)
        assert done.code == 0, (command, done.err)
        assert self.serving == (2 if command == "publish" else 1)
        self.inspect()

    def kill(self, command: str, **kill: float) -> Outcome:
        """Kill a command; every other time, let a sync complete it."""
        before, there = self.serving, 2 if command == "publish" else 1
        killed = self.run(command, **kill)
        assert killed.code in (0, KILLED), (command, killed.err)
        if killed.code == KILLED:
            self.killed.append(command)
        # Immediately, exactly one build answers.
        assert self.serving in {before, there}
        self.ask()
        if len(self.killed) % 2:
            synced = self.server.run("sync", self.id)
            assert synced.code == 0, (command, killed.boundaries, synced.err)
            pin = self.driver.session.catalog.pins.find(self.id)
            assert self.serving == (2 if pin is None else pin.generation), killed.boundaries
            self.inspect(killed.boundaries)
            if self.serving == there and (pin is None) == (command == "publish"):
                return killed
        self.go(command)
        return killed

    def ask(self) -> None:
        hits = self.installation.search(self.id, "steward on duty", mode="text", top_k=20)
        assert {hit.uri for hit in hits} == {"files/a.md", "files/b.md"}

    def inspect(self, boundaries: object = None) -> None:
        """Fail unless alias, entries, rows and runs are as after an undisturbed command."""
        self.ask()
        with self.driver.locked(self.id) as ctx:
            assert all(state.is_healthy for state in inspect_index(ctx)), boundaries
            serving = ctx.catalog.generations.serving(self.id)
            assert serving is not None
            assert serving.number == self.serving, boundaries
            assert is_alias_right(ctx, serving), boundaries
            assert ctx.catalog.documents.count_by_status(self.id) == {"READY": 2}
        session = self.driver.session
        fail_abandoned_runs(self.instance, session.catalog, session.settings)
        runs = self.instance.get_runs(filters=dg.RunsFilter(tags={PARTITION_TAG: self.id}))
        ended = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}
        assert {run.status for run in runs} <= ended, boundaries


@pytest.fixture(scope="module")
def moved(shared_installation: Installation, server: ForkServer) -> Moved:
    folder = shared_installation.add_tenant("moved", **FAST)
    for name in ("a", "b"):
        (folder / f"{name}.md").write_text(f"# {name}\n\n{name}: {TEXT}\n")
    driver = Driver(shared_installation)
    driver.sync("moved")
    shared_installation.configure("moved", **OTHER)
    driver.sync("moved")
    instance = shared_installation.session().instance
    made = Moved("moved", folder, server, shared_installation, driver, instance)
    assert made.serving == 2
    return made


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_killed_at_every_kind_of_write(moved: Moved) -> None:
    there: list[tuple[str, int]] = []
    names: dict[str, list[str]] = {}
    # The first command of a tenant also scans the stored text for credentials.
    moved.go("rollback")
    moved.go("publish")
    for command in ("rollback", "rollback --now"):
        names[command] = moved.run(command, kill_before=0).boundaries
        names["publish"] = moved.run("publish", kill_before=0).boundaries
        there += [(command, number) for number in moments(names[command])]
    assert moved.serving == 2
    for boundaries in names.values():
        assert "catalog rag_catalog.serving" in boundaries
        assert "elasticsearch POST _aliases" in boundaries
    for way, home in zip_longest(there, moments(names["publish"])):
        if way is None:
            moved.go("rollback --now")
        else:
            command, number = way
            killed = moved.kill(command, kill_before=number)
            assert killed.boundaries == names[command][:number]
        if home is None:
            moved.go("publish")
        else:
            killed = moved.kill("publish", kill_before=home)
            assert killed.boundaries == names["publish"][:home]


def moments(boundaries: list[str]) -> list[int]:
    """Return the numbers of boundaries, from 1: the last of each kind of write.

    Writes of the sync before a move come first, and test_kill kills at each of them. Rows that only
    describe the lock's holder are left out.
    """
    last = {name: number for number, name in enumerate(boundaries, 1)}
    last.pop("catalog rag_catalog.tenant_locks", None)
    return sorted(last.values())


def test_killed_at_random_moments(moved: Moved) -> None:
    chance = random.Random(SEED)
    begun = monotonic()
    undisturbed = moved.run("rollback" if moved.serving == 2 else "publish")
    whole = monotonic() - begun
    assert undisturbed.code == 0, undisturbed.err
    before = len(moved.killed)
    for _ in range(RANDOM):
        command = "publish" if moved.serving == 1 else chance.choice(["rollback", "rollback --now"])
        moved.kill(command, kill_after=chance.uniform(0.05, 0.8) * whole)
    # Some are faster than the timed one, and end before they are killed.
    assert len(moved.killed) - before >= RANDOM // 2


def test_a_discard_killed_at_every_write_boundary(
    shared_installation: Installation, server: ForkServer
) -> None:
    driver = Driver(shared_installation)
    tenant = "discarded"
    folder = shared_installation.add_tenant(tenant, **FAST)
    (folder / "a.md").write_text(f"# a\n\n{TEXT}\n")
    driver.sync(tenant)

    def build_anew() -> int:
        """Make the other build and retire it; return its number."""
        shared_installation.configure(tenant, index={"placement": "dedicated"})
        driver.sync(tenant)
        shared_installation.configure(tenant, index=None)
        driver.sync(tenant)
        return max(g.number for g in driver.session.catalog.generations.live(tenant))

    def discard(number: int, **kill: int) -> Outcome:
        return server.run("generations", "discard", tenant, str(number), **kill)

    first = discard(build_anew())  # this also scans the stored text for credentials
    assert first.code == 0, first.err
    undisturbed = discard(build_anew(), kill_before=0)
    assert undisturbed.code == 0, undisturbed.err
    names = undisturbed.boundaries
    assert "catalog rag_catalog.generations" in names
    assert any(name.startswith("elasticsearch") for name in names)
    for number in range(1, len(names) + 1):
        build = build_anew()
        killed = discard(build, kill_before=number)
        assert (killed.code, killed.boundaries) == (KILLED, names[:number])
        live = {g.number: g for g in driver.session.catalog.generations.live(tenant)}
        if build in live and live[build].state == "REMOVING" and number % 2:
            with driver.locked(tenant) as ctx:  # daily upkeep completes it
                assert drop_old_generations(ctx) == 1
        elif build in live:  # an operator repeats it
            again = discard(build)
            assert again.code == 0, (names[number - 1], again.err)
        with driver.locked(tenant) as ctx:
            assert [g.state for g in ctx.catalog.generations.live(tenant)] == ["SERVING"]
            assert ctx.store.indexes.dedicated(tenant) == [], names[number - 1]
            assert all(state.is_healthy for state in inspect_index(ctx))


def test_of_two_commands_at_once_one_waits_or_says_who(
    moved: Moved, monkeypatch: pytest.MonkeyPatch
) -> None:
    if moved.serving != 2:
        moved.go("publish")
    arguments = ("generations", "rollback", moved.id, "--reason", "a trial", "--json")
    boundary = "elasticsearch POST _aliases"
    with moved.server.stopped(*arguments, "--now", before=boundary) as go_on:
        monkeypatch.setattr(sessions, "_LOCK_WAIT_SECONDS", 0.5)
        late = moved.installation.command("generations", "discard", moved.id, "2")
        assert late.code == 1
        assert "is being written by rollback (process " in late.err
        waiting = moved.installation.start("generations", "publish", moved.id, "--json")
        assert waiting.stderr is not None
        line = next((line for line in waiting.stderr if "waiting for" in line), "")
        assert "waiting for rollback (process " in line
        first = go_on()
        out, err = waiting.communicate(timeout=240)
    assert (first.code, waiting.returncode) == (0, 0), (first.err, out, err)
    moved.inspect()
    assert moved.serving == 2
