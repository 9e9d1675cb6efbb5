"""kill -9 while a repository's definitions, relations and derived documents are recorded."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from rag_assets.pipeline.context import DailyShare
from rag_assets.pipeline.drift import inspect_index
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.pipeline.fact_store import compare_relations
from rag_assets.systems.code_memory.retrieval.walk import Walker
from tests.code_index import differences, index_of, left_over
from tests.driving import Driver
from tests.e2e.killing import KILLED, ForkServer, Outcome, fork_server, kills
from tests.histories import History, State, put
from tests.installation import FAST, Installation
from tests.integration.systems.code_memory.test_relations import FILES as OTHERS
from tests.integration.systems.code_memory.test_searches import FILES as PHP
from tests.repositories import MadeRepository
from tests.unit.systems.code_memory.derived.test_documents import LARAVEL

KILLS = kills(3)
SEED = 23
TENANT = "killed-code"
FILES: State = {path: text.encode() for path, text in {**PHP, **OTHERS, **LARAVEL}.items()}
STEADY: State = {
    "steady/base.py": b"class Steady:\n    pass\n",
    "steady/heir.py": b"from .base import Steady\n\n\nclass Heir(Steady):\n    pass\n",
}


@pytest.fixture(scope="module")
def server(shared_installation: Installation) -> Iterator[ForkServer]:
    with fork_server(shared_installation.environment) as started:
        yield started


@dataclass
class Repository:
    """A tenant whose repository changes in every round, and whose syncs are killed."""

    made: MadeRepository
    server: ForkServer
    driver: Driver
    installation: Installation
    states: Iterator[State]
    done: list[str] = field(default_factory=list)
    round: int = 0

    def change(self) -> None:
        self.round += 1
        own = f"class Round{self.round}:\n    pass\n".encode()
        put(self.made.root, next(self.states) | STEADY | {"steady/round.py": own})
        self.made.commit()

    def sync(self, **kill: float) -> Outcome:
        return self.server.run("sync", TENANT, "--json", "--allow-deletes", **kill)  # type: ignore[arg-type]

    def ask(self) -> None:
        """Fail unless answers about unchanged files are right, and relations lead to symbols."""
        walker = Walker(self.driver.session.catalog)
        walk = walker.walk_from_name(TENANT, Caller(), "steady.heir.Heir", direction="out")
        told = [(relation.kind, relation.target) for relation in walk.relations]
        assert told == [("extends", "steady.base.Steady")], self.done
        [steady] = walker.find_definitions(TENANT, Caller(), name="steady.base.Steady")
        assert steady.line_start == 1

    def inspect(self, boundaries: list[str]) -> None:
        """Fail unless the tenant equals a fresh one, and another sync finds nothing to do."""
        fresh = f"{TENANT}-{self.round}"
        add(self.installation, fresh, self.made)
        self.driver.sync(fresh)
        with self.driver.locked(fresh) as ctx:
            anew = index_of(ctx)
        with self.driver.locked(TENANT) as ctx:
            assert all(state.is_healthy for state in inspect_index(ctx)), boundaries
            assert compare_relations(ctx, DailyShare(1, datetime.now(UTC).date())).none, boundaries
            assert left_over(ctx) == [], boundaries
            differing = "\n".join(differences(index_of(ctx), anew))
        assert not differing, f"{boundaries}\n{differing}"


def add(installation: Installation, tenant: str, made: MadeRepository) -> None:
    source = {"name": "repo", "type": "git", "root": str(made.root), "ref": "HEAD"}
    installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[source],
    )


@pytest.fixture(scope="module")
def repository(shared_installation: Installation, server: ForkServer) -> Repository:
    made = MadeRepository(shared_installation.home.parent / "sources" / TENANT)
    made.commit(FILES | STEADY)
    add(shared_installation, TENANT, made)
    states = History(FILES, SEED).states(10_000)
    driver = Driver(shared_installation)
    found = Repository(made, server, driver, shared_installation, states)
    first = found.sync()
    assert first.code == 0, first.err
    return found


def killed_round(repository: Repository, **kill: float) -> Outcome:
    """Change files, kill the sync, query, sync again, and inspect the result."""
    repository.change()
    killed = repository.sync(**kill)
    assert killed.code in (0, KILLED), killed.err
    repository.done.append(str(kill))
    repository.ask()
    ctx = repository.installation.context(TENANT)
    before = ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)
    again = repository.sync()
    assert again.code == 0, (again.err, killed.boundaries)
    after = ctx.lake.readable().read_vector_hashes(ctx.embedder.embedder_id)
    # If the last run had nothing to embed, the stage is missing.
    embedded = again.json["stages"].get("embeddings", {}).get("embedded", 0)
    assert embedded == len(after - before), "a vector was paid twice"
    repository.inspect(killed.boundaries)
    return killed


@pytest.mark.timeout(1800)
def test_killed_at_moments_all_over_its_way(repository: Repository) -> None:
    repository.change()
    undisturbed = repository.sync(kill_before=0)
    assert undisturbed.code == 0, undisturbed.err
    count = len(undisturbed.boundaries)
    recording = {name: at for at, name in enumerate(undisturbed.boundaries, 1)}
    within = [recording[f"within rag_catalog.{table}"] for table in ("edges", "derivations")]
    others = [1 + kill * count // KILLS for kill in range(KILLS - len(within))]
    for number in [*within, *others]:
        killed_round(repository, kill_before=number)


@pytest.mark.timeout(1800)
def test_killed_at_random_moments(repository: Repository) -> None:
    chance = random.Random(SEED)
    outcomes = [killed_round(repository, kill_after=chance.uniform(0.1, 2.5)) for _ in range(KILLS)]
    assert sum(outcome.code == KILLED for outcome in outcomes) >= KILLS // 3
