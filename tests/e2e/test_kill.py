"""kill -9 at every write boundary and at random moments; the next sync repairs everything.

The syncs are real commands in processes of their own (see fork_server.py). Two lanes, each with a
tenant, go through the same states of a folder: edits, new, removed, renamed and touched files, and
content that returns. In every round one or more syncs are killed before one is left alone. The
expected index comes from a twin tenant that was never disturbed and has indexed the contents of all
states. Lost vectors are counted in the lake after each kill.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.drift import inspect_index
from rag_assets.resources.own_runs import PARTITION_TAG
from rag_assets.resources.tenant_lock import fail_abandoned_runs
from tests.e2e.killing import KILLED, ForkServer, Outcome, fork_server
from tests.installation import FAST, Installation

LANES = 2
RANDOM_ROUNDS = 2
KILLS_A_ROUND = 3
STATES = 40
SETTINGS = {**FAST, "chunker": {"max_tokens": 32, "overlap": 0}}
SEED = 7

Folder = dict[str, str]
Entries = frozenset[tuple[int, str, str, tuple[str, ...]]]


def document(name: str, version: int) -> str:
    """Return a document of three chunks; two versions differ in one sentence of one chunk."""
    steady = "The steward on duty decides, and writes down why."
    return (
        f"# {name}\n\nAbout {name}. {steady} Nobody else has to be asked about that.\n\n"
        f"## Today\n\nThis is version {version} of {name}.\n\n"
        f"## Always\n\n{steady} {name} never changes here.\n"
    )


def states() -> list[Folder]:
    """Return the states of the folder; each follows from the one before."""
    folder = {f"d{n}.md": document(f"d{n}", 0) for n in range(8)}
    # So every round can remove a document whose content is in no other file.
    folder |= {f"new/n{n}.md": document(f"n{n}", n) for n in range(-2, 1)}
    made = [folder]
    for turn in range(1, STATES):
        folder = dict(folder)
        folder[f"d{turn % 4}.md"] = document(f"d{turn % 4}", turn)
        folder["back-and-forth.md"] = document("back-and-forth", turn % 2)
        folder[f"new/n{turn}.md"] = document(f"n{turn}", turn)
        folder.pop(f"new/n{turn - 3}.md", None)
        moved = next(name for name in sorted(folder) if name.startswith(("d7", "moved")))
        folder[f"moved-{turn}.md"] = folder.pop(moved)
        made.append(folder)
    return made


def put(folder: Path, state: Folder) -> None:
    """Write a state to the folder; renamed files are moved."""
    present = {str(path.relative_to(folder)): path for path in folder.rglob("*.md")}
    contents = {path.read_text(): path for name, path in present.items() if name not in state}
    for name, content in state.items():
        target = folder / name
        target.parent.mkdir(exist_ok=True)
        if name not in present and content in contents:
            contents.pop(content).rename(target)
        elif name not in present or target.read_text() != content:
            target.write_text(content)
    for name in present.keys() - state.keys():
        (folder / name).unlink(missing_ok=True)
    (folder / "d5.md").touch()


def entries_by_uri(ctx: TenantContext) -> dict[str, Entries]:
    """Return every entry of the serving generation, including stale ones."""
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    assert serving is not None
    found: dict[str, list[tuple[int, str, str, tuple[str, ...]]]] = {}
    for hit in ctx.store.entries.stored(serving.index_name, ctx.owner(serving)):
        fields = hit.fields
        entry = (
            fields["ordinal"],
            fields["text_sha256"],
            fields["text"],
            tuple(fields["heading_path"]),
        )
        found.setdefault(fields["uri"], []).append(entry)
    assert all(len(entries) == len(set(entries)) for entries in found.values()), "doubled"
    return {uri: frozenset(entries) for uri, entries in found.items()}


@dataclass(frozen=True)
class Twin:
    """The result of an undisturbed sync for every content."""

    entries: dict[str, Entries]

    def of(self, state: Folder) -> dict[str, Entries]:
        """Return the entries of a state of the folder, by URI."""
        return {f"files/{name}": self.entries[content] for name, content in state.items()}

    def texts(self, state: Folder) -> set[str]:
        """Return all texts that must be embedded for a state."""
        return {entry[1] for content in state.values() for entry in self.entries[content]}


@pytest.fixture(scope="module")
def twin(shared_installation: Installation) -> Twin:
    """Index every content of every state with an undisturbed sync."""
    contents = sorted({content for state in states() for content in state.values()})
    names = {hashlib.sha256(content.encode()).hexdigest()[:16]: content for content in contents}
    folder = shared_installation.add_tenant("twin", **SETTINGS)
    for name, content in names.items():
        (folder / f"{name}.md").write_text(content)
    shared_installation.synced("twin")
    found = entries_by_uri(shared_installation.context("twin"))
    assert all(len(entries) >= 2 for entries in found.values())
    return Twin({content: found[f"files/{name}.md"] for name, content in names.items()})


@pytest.fixture(scope="module")
def servers(shared_installation: Installation) -> Iterator[list[ForkServer]]:
    """Start a fork server for each lane."""
    environment = shared_installation.environment
    with fork_server(environment) as one, fork_server(environment) as other:
        yield [one, other]


@dataclass
class Lane:
    """A tenant whose syncs are killed, and the present state of its folder."""

    tenant: str
    folder: Path
    server: ForkServer
    twin: Twin
    instance: dg.DagsterInstance
    installation: Installation
    turn: int = 0

    def begin(self) -> None:
        """Index the first state, undisturbed."""
        put(self.folder, states()[0])
        self.sync()
        self.context = self.installation.context(self.tenant)

    def sync(self, **kill: float) -> Outcome:
        """Sync in another process."""
        outcome = self.server.run("sync", self.tenant, "--json", **kill)  # type: ignore[arg-type]
        assert outcome.code in (0, KILLED), (outcome.out, outcome.err[-2000:])
        return outcome

    def round(self, *kills: dict[str, float]) -> list[Outcome]:
        """Apply the next state, kill the following syncs, sync again, and inspect the result."""
        self.turn += 1
        state = states()[self.turn]
        put(self.folder, state)
        killed = [self.sync(**kill) for kill in kills]
        boundaries = [boundary for outcome in killed for boundary in outcome.boundaries]
        lake, embedder = self.context.lake, self.context.embedder
        kept = lake.read_vector_hashes(embedder.embedder_id)
        for _, texts, _ in lake.spool(embedder.embedder_id, embedder.dimensions).kept():
            kept = {*kept, *texts}
        again = self.sync()
        assert again.code == 0, again.err
        assert again.json["error"] is None
        lost = self.twin.texts(state) - kept
        assert again.json["stages"]["embeddings"]["embedded"] == len(lost), boundaries
        self.inspect(state, boundaries)
        if again.json["nothing_to_do"]:
            # A run killed after its last write; the sensor source_files does this at every tick.
            fail_abandoned_runs(self.instance, self.context.catalog, self.context.settings)
        assert unfinished(self.instance, self.tenant) == [], boundaries
        return killed

    def inspect(self, state: Folder, boundaries: list[str]) -> None:
        """Fail unless index, catalog, lake and runs are as after an undisturbed sync."""
        ctx = self.context
        assert entries_by_uri(ctx) == self.twin.of(state), boundaries
        assert all(found.is_healthy for found in inspect_index(ctx)), boundaries
        documents = {document.uri: document for document in ctx.catalog.documents.all(ctx.ref.id)}
        assert documents.keys() == {f"files/{name}" for name in state}
        for uri, entries in self.twin.of(state).items():
            assert documents[uri].status == "READY", (uri, boundaries)
            assert documents[uri].chunk_count == len(entries)
        generation = ctx.catalog.generations.live(ctx.ref.id)[-1].number
        assert not ctx.catalog.index.find_dirty(ctx.ref.id, generation), boundaries
        assert not ctx.catalog.index.removals(ctx.ref.id)
        assert ctx.lake.size()["parsed_text"].rows == len(ctx.lake.read_parsed_keys())
        vectors = ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)
        assert self.vector_rows() == len(vectors), boundaries
        assert not ctx.catalog.lock.is_held(self.tenant)

    def vector_rows(self) -> int:
        """Return the number of vector rows in the lake, including duplicates."""
        sizes = self.context.lake.size()
        return sum(size.rows for name, size in sizes.items() if name.startswith("embeddings"))


def unfinished(instance: dg.DagsterInstance, tenant: str) -> list[dg.DagsterRun]:
    """Return the tenant's runs that have not ended."""
    ended = {dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE}
    runs = instance.get_runs(filters=dg.RunsFilter(tags={PARTITION_TAG: tenant}))
    return [run for run in runs if run.status not in ended]


@pytest.fixture(scope="module")
def lanes(shared_installation: Installation, servers: list[ForkServer], twin: Twin) -> list[Lane]:
    """Create the lanes, with their first state indexed."""
    instance = shared_installation.session().instance
    made = []
    for number, server in enumerate(servers):
        tenant = f"lane-{number}"
        folder = shared_installation.add_tenant(tenant, **SETTINGS)
        # More documents are removed within a day than an accident would be allowed to.
        source = {"name": "files", "type": "files", "root": str(folder)}
        source |= {"deletion_window_hours": 0}
        shared_installation.configure(tenant, sources=[source])
        made.append(Lane(tenant, folder, server, twin, instance, shared_installation))
    side_by_side(made, lambda lane: lane.begin())
    return made


def side_by_side(lanes: list[Lane], work: Callable[[Lane], object]) -> None:
    """Call a function for all lanes in parallel."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        for done in [pool.submit(work, lane) for lane in lanes]:
            done.result()


@pytest.mark.timeout(900)
def test_killed_at_every_write_boundary(lanes: list[Lane]) -> None:
    (undisturbed,) = lanes[0].round({"kill_before": 0})
    count = len(undisturbed.boundaries)
    assert {name.partition(" ")[0] for name in undisturbed.boundaries} == {
        "catalog",
        "lake",
        "elasticsearch",
    }
    killed: list[int] = []

    def go(lane: Lane) -> None:
        for number in range(1 + lanes.index(lane), count + 1, LANES):
            (outcome,) = lane.round({"kill_before": number})
            assert outcome.code == KILLED
            assert outcome.boundaries == undisturbed.boundaries[:number]
            killed.append(number)

    side_by_side(lanes, go)
    assert sorted(killed) == list(range(1, count + 1))
    assert count >= 20


def test_killed_at_random_moments(lanes: list[Lane]) -> None:
    chance = random.Random(SEED)
    rounds = [
        [{"kill_after": chance.uniform(0.05, 1.3)} for _ in range(KILLS_A_ROUND)]
        for _ in range(RANDOM_ROUNDS)
    ]
    killed: list[Outcome] = []

    def go(lane: Lane) -> None:
        for kills in rounds[lanes.index(lane) :: LANES]:
            outcomes = lane.round(*kills)
            killed.extend(outcome for outcome in outcomes if outcome.code == KILLED)

    side_by_side(lanes, go)
    # On a fast machine some syncs end before they are killed.
    assert len(killed) >= KILLS_A_ROUND * RANDOM_ROUNDS * 3 // 4


@pytest.mark.ci
def test_a_first_sync_killed_at_every_write_boundary(
    shared_installation: Installation, servers: list[ForkServer]
) -> None:
    server = servers[0]

    def add(name: str) -> None:
        folder = shared_installation.add_tenant(name, **FAST, index={"placement": "dedicated"})
        (folder / "only.md").write_text(f"# Only\n\nOf {name}.\n")

    add("registering")  # The first sync of an installation also registers it.
    assert server.run("sync", "registering").code == 0
    add("first-0")
    undisturbed = server.run("sync", "first-0", kill_before=0)
    assert undisturbed.code == 0, undisturbed.err
    names = undisturbed.boundaries
    begin = names.index("elasticsearch PUT index")
    end = next(n for n, name in enumerate(names) if name.startswith("lake"))
    assert end - begin >= 5
    for number in range(begin + 1, end + 1):
        tenant = f"first-{number}"
        add(tenant)
        assert server.run("sync", tenant, kill_before=number).boundaries == names[:number]
        again = server.run("sync", tenant)
        assert again.code == 0, again.err
        ctx = shared_installation.context(tenant)
        (state,) = inspect_index(ctx)
        assert state.is_healthy, (names[number - 1], state)
        assert list(entries_by_uri(ctx)) == ["files/only.md"]
