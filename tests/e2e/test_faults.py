"""Faults of every kind in random order, in one installation.

Its sources are edited, renamed and held, and its documents pruned and purged. Meanwhile the
embedding provider fails, commands are killed, the disk fills up, and the clock jumps. After each
step the index equals the sources, no held document is lost, and every receipt is true. No text is
paid for twice, except one batch for each kill. Each failed document states why it failed and when
it is tried again.

RAG_ASSETS_TEST_FAULT_STEPS=200 takes more steps, RAG_ASSETS_TEST_FAULT_SEED other ones.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.databases import create_database
from tests.e2e.killing import ForkServer, fork_server
from tests.e2e.operators import everyday, losses
from tests.e2e.operators.everyday import note_erased, purge_of
from tests.e2e.operators.model import LAKE, PREFIX, Operated
from tests.e2e.operators.walk import Step, Walk
from tests.e2e.operators.world import WORD, World
from tests.embedding_server import Cut, EmbeddingServer, Status, embedding_server
from tests.mounts import can_mount, small_disk
from tests.parsers import share_parsers
from tests.sites import Site

STEPS = int(os.environ.get("RAG_ASSETS_TEST_FAULT_STEPS", "30"))
SEED = int(os.environ.get("RAG_ASSETS_TEST_FAULT_SEED", "1"))
BATCH = 4
_DISK_BYTES = 48 << 20
_FAULTS = (Status(500), Status(503), Status(429, retry_after="0"), Cut(), Cut(halfway=True))
_UNUSABLE: tuple[Any, ...] = (None, [], [0.0] * 16, [float("nan")] * 16)
"""What a provider may send in the place of a vector."""


class FaultWalk(Walk):
    """The walk of one installation with one tenant.

    Args:
        world: the servers.
        server: runs the commands that are killed.
        provider: the embedding server.
    """

    def __init__(self, world: World, server: ForkServer, provider: EmbeddingServer) -> None:
        self.world = world
        self.server = server
        self.provider = provider
        self.random = random.Random(SEED)
        self.log: list[str] = []
        self.kills = 0
        self.unusable: set[str] = set()
        """Words of texts that the provider answered with something unusable."""
        self.operated = self._installation()
        self.installations = [self.operated]

    def _installation(self) -> Operated:
        home = self.world.folder / "home"
        home.mkdir()
        share_parsers(home)
        url = create_database(self.world.postgres_url, self.world.new_name(self.world.stem))
        environment = {
            "RAG_ASSETS_DATABASE_URL": url,
            "RAG_ASSETS_ELASTICSEARCH_URL": os.environ["RAG_ASSETS_ELASTICSEARCH_URL"],
            PREFIX: self.world.stem,
            LAKE: str(self.world.folder / "disk" / "lake"),
            "RAG_ASSETS_MASTER_KEY_FILE": str(self.world.folder / "master.key"),
            "RAG_ASSETS_PRIVATE_ENDPOINTS": "127.0.0.1",
            "RAG_ASSETS_DEBUG": "1",
        }
        operated = Operated(self.world, "alpha", Site(home, environment))
        operated.add_tenant("acme", self.world.folder / "sources")
        embedder = {
            "provider": "openai-compatible",
            "model": "house-model",
            "dimensions": self.provider.dimensions,
            "base_url": self.provider.url,
            "batch_size": BATCH,
            "concurrency": 1,
        }
        operated.configure("acme", embedder=embedder)
        for number in range(4):
            operated.write("acme", f"{number}.md")
        operated.upload("acme", self.world.new_word())
        operated.push("acme", "page")
        operated.verify()
        return operated

    def take(self, number: int) -> None:
        """Take one step, and compare the installation with its model."""
        [(step, _)] = self.random.choices([*STEPS_TAKEN.items()], [*STEPS_TAKEN.values()])
        self.log.append(f"{number} {step.__name__}")
        began = time.monotonic()
        step(self, self.operated)
        self.log[-1] += f" ({time.monotonic() - began:.1f} s)"
        self.verify_failures()
        self.operated.verify()
        self.verify_payments()

    def kill(self, operated: Operated, command: list[str], after: float) -> None:
        self.kills += 1
        super().kill(operated, command, after)

    def verify_payments(self) -> None:
        """Fail unless each text was answered once, except one batch for each kill."""
        again = {
            text: times - 1
            for text, times in self.provider.answered.items()
            if times > 1 and (words := set(WORD.findall(text))) and not words & self.unusable
        }
        assert sum(again.values()) <= BATCH * self.kills, again

    def verify_failures(self) -> None:
        """Fail unless each failed document has a reason, and a time of its next attempt if any."""
        with psycopg.connect(self.operated.database_url) as connection:
            failed = connection.execute(
                "SELECT uri, error_message, error_kind, retry_at::text FROM rag_catalog.documents"
                " WHERE status = 'FAILED'"
            ).fetchall()
        for row in failed:
            _, message, kind, retry_at = row
            assert message, row
            assert retry_at or kind == "text-rejected", row

    def let_time_pass(self) -> None:
        """Make all pending attempts due."""
        with psycopg.connect(self.operated.database_url) as connection:
            for table in ("documents", "syncs"):
                connection.execute(
                    f"UPDATE rag_catalog.{table} SET retry_at = now()"  # noqa: S608
                    " WHERE retry_at > now() AND isfinite(retry_at)"
                )


def rename_files(walk: Walk, operated: Operated) -> None:
    tenant = operated.tenants["acme"]
    for name in walk.random.sample(sorted(tenant.files.keys() - tenant.kept_out), 2):
        other = walk.world.new_name("renamed") + ".md"
        (tenant.folder / name).rename(tenant.folder / other)
        tenant.files[other] = tenant.files.pop(name)


def hold_what_is_due(walk: Walk, operated: Operated) -> None:
    """Prune under a hold when all documents are past their retention: none may be deleted."""
    operated.settle("acme")
    operated.done("hold", "set", "acme", "--reason", "a claim")
    before = operated.words("acme")
    operated.configure("acme", retention_days=100)
    with psycopg.connect(operated.database_url) as connection:
        ages = connection.execute("SELECT document_id, embedded_at FROM rag_catalog.documents")
        former = [(at, id_) for id_, at in ages.fetchall()]
        connection.execute(
            "UPDATE rag_catalog.documents SET embedded_at = now() - interval '101 days'"
        )
    operated.run("prune", "acme", "--confirm")
    operated.run("sync", "acme")
    assert operated.words("acme") == before
    with psycopg.connect(operated.database_url) as connection, connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE rag_catalog.documents SET embedded_at = %s WHERE document_id = %s", former
        )
    operated.configure("acme", retention_days=None)
    operated.done("hold", "lift", "acme", "--reason", "it is settled")


def provider_fails(walk: Walk, operated: Operated) -> None:
    """Let the next requests to the provider fail, and later ones succeed."""
    assert isinstance(walk, FaultWalk)
    for _ in range(walk.random.randint(1, 7)):
        operated.write("acme", walk.world.new_name("file") + ".md")
    walk.provider.faults.extend(walk.random.choices(_FAULTS, k=walk.random.randint(1, 2)))
    walk.note(str(walk.provider.faults))
    for _ in range(2):
        operated.run("sync", "acme")
    walk.provider.faults.clear()
    walk.verify_failures()
    walk.let_time_pass()


def provider_is_down(walk: Walk, operated: Operated) -> None:
    """Let every request fail for a while: no document fails, and few requests are sent."""
    assert isinstance(walk, FaultWalk)
    for _ in range(walk.random.randint(1, 9)):
        operated.write("acme", walk.world.new_name("file") + ".md")
    walk.provider.always = Status(walk.random.choice([500, 503]))
    before = len(walk.provider.requests)
    operated.run("sync", "acme")
    assert len(walk.provider.requests) - before <= 12
    walk.provider.always = None
    walk.verify_failures()
    walk.let_time_pass()


def provider_spoils_a_text(walk: Walk, operated: Operated) -> None:
    """Let the provider return no usable vector for one text: only its document fails."""
    assert isinstance(walk, FaultWalk)
    for _ in range(walk.random.randint(0, 6)):
        operated.write("acme", walk.world.new_name("file") + ".md")
    operated.write("acme", "bad.md")
    tenant = operated.tenants["acme"]
    word = tenant.files["bad.md"]
    walk.unusable.add(word)
    walk.provider.spoils = lambda text: word in text
    walk.provider.spoilt = walk.random.choice(_UNUSABLE)
    walk.note(str(walk.provider.spoilt))
    for _ in range(3):
        operated.run("sync", "acme")
    assert set(operated.words("acme")) >= tenant.words() - {word}
    [failed] = [
        one for one in operated.done("documents", "acme")["documents"] if one["status"] == "FAILED"
    ]
    assert failed["uri"] == "files/bad.md"
    walk.verify_failures()
    walk.provider.spoils = lambda text: False
    operated.write("acme", "bad.md")


def fill_the_disk(walk: Walk, operated: Operated) -> None:
    """Fill the lake's disk while documents are new: vectors that are paid for are stored."""
    filler = walk.world.folder / "disk" / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError:
            pass
    free_bytes = walk.random.choice([0, 4 << 10, 16 << 10, 64 << 10])
    os.truncate(filler, max(0, filler.stat().st_size - free_bytes))
    walk.note(f"but for {free_bytes} bytes")
    for _ in range(walk.random.randint(1, 12)):
        operated.write("acme", walk.world.new_name("file") + ".md")
    for _ in range(2):
        operated.run("sync", "acme")
    filler.unlink()
    assert isinstance(walk, FaultWalk)
    walk.verify_failures()
    walk.let_time_pass()


def kill_a_command(walk: Walk, operated: Operated) -> None:
    """Kill a command at a random moment; the next command completes its work."""
    for _ in range(walk.random.randint(1, 6)):
        operated.write("acme", walk.world.new_name("file") + ".md")
    kind = walk.random.choice(["sync", "sync", "repair", "compact", "purge"])
    after = walk.random.uniform(0.05, 1.5)
    walk.note(f"{kind} after {after:.2f} s")
    if kind == "purge":
        operated.settle("acme")
        command, erased = purge_of(walk, operated, "acme")
        walk.kill(operated, command, after)
        operated.run(*command)
        operated.settle("acme")
        note_erased(operated, "acme", erased())
        return
    commands: Mapping[str, list[str]] = {
        "sync": ["sync", "acme"],
        "repair": ["sync", "acme", "--repair"],
        "compact": ["compact"],
    }
    walk.kill(operated, commands[kind], after)
    operated.persist(*commands[kind])


STEPS_TAKEN: dict[Step, int] = {
    everyday.edit_files: 6,
    everyday.upload_files: 3,
    everyday.push_records: 3,
    everyday.purge: 4,
    everyday.prune_old_documents: 3,
    everyday.weekly_jobs: 2,
    everyday.daily_jobs: 2,
    losses.set_clock_ahead: 3,
    rename_files: 5,
    hold_what_is_due: 4,
    provider_fails: 6,
    provider_is_down: 3,
    provider_spoils_a_text: 4,
    kill_a_command: 8,
    **({fill_the_disk: 6} if can_mount() else {}),
}


@pytest.fixture
def walk(
    postgres_url: str, elasticsearch_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FaultWalk]:
    monkeypatch.setenv("RAG_ASSETS_ELASTICSEARCH_URL", elasticsearch_url)
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
    world = World(tmp_path, postgres_url, elasticsearch_url, f"t{uuid.uuid4().hex[:8]}")
    for name in ("server", "disk"):
        (tmp_path / name).mkdir()
    share_parsers(tmp_path / "server")
    environment = {**os.environ, "RAG_ASSETS_HOME": str(tmp_path / "server")}
    with ExitStack() as stack:
        if can_mount():
            stack.enter_context(small_disk(tmp_path / "disk", _DISK_BYTES))
        provider = stack.enter_context(embedding_server())
        server = stack.enter_context(fork_server(environment))
        try:
            yield FaultWalk(world, server, provider)
        finally:
            world.close()


@pytest.mark.nightly
@pytest.mark.timeout(max(600, 30 * STEPS))
def test_after_any_faults_the_index_equals_its_sources(walk: FaultWalk) -> None:
    for number in range(1, STEPS + 1):
        try:
            walk.take(number)
        finally:
            walk.write_log()
