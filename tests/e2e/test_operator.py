"""A randomized operator: two installations on shared servers, and hundreds of steps.

It edits sources, uploads, pushes, purges and removes; it copies, moves, clones and restores; it
changes prefixes and addresses, sets clocks, takes disks away, kills commands and runs every daily
and weekly job. After each step the other installation is as it was. In between and at the end each
installation equals its sources, no original is lost, and every receipt is true.

RAG_ASSETS_TEST_OPERATOR_STEPS=300 takes a longer walk, RAG_ASSETS_TEST_OPERATOR_SEED another one.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import dagster as dg
import psycopg
import pytest

from rag_assets.cli.commands.runs import repository
from tests.databases import create_database, execute
from tests.e2e.killing import KILLED, ForkServer, fork_server
from tests.e2e.operating import BLOBS, LAKE, PREFIX, Operated, World, copy_folder, label_of
from tests.parsers import share_parsers
from tests.sites import Site

STEPS = int(os.environ.get("RAG_ASSETS_TEST_OPERATOR_STEPS", "60"))
SEED = int(os.environ.get("RAG_ASSETS_TEST_OPERATOR_SEED", "1"))
_VERIFY_EVERY = 50
_VARIABLES = {"lake": LAKE, "blobs": BLOBS}
_MOVE = ("installation move", "sync")

Step: TypeAlias = Callable[["Walk", Operated], None]
_STEPS: dict[str, tuple[Step, int]] = {}


def step(weight: int) -> Callable[[Step], Step]:
    """Register a step, which is taken this often in proportion to the others."""

    def register(function: Step) -> Step:
        _STEPS[function.__name__] = function, weight
        return function

    return register


class Walk:
    """The walk of one operator.

    Args:
        world: the servers.
        server: runs the commands that are killed.
        seed: of all random choices.
    """

    def __init__(self, world: World, server: ForkServer, seed: int) -> None:
        self.world = world
        self.server = server
        self.random = random.Random(seed)
        self.installations = [self._new_installation(name) for name in ("alpha", "beta")]
        self.log: list[str] = []

    def _new_installation(self, name: str) -> Operated:
        home = self.world.folder / name / "home"
        home.mkdir(parents=True)
        share_parsers(home)
        database = self.world.new_name(f"{self.world.stem}{name[0]}")
        environment = {
            "DATABASE_URL": create_database(self.world.postgres_url, database),
            "ELASTICSEARCH_URL": os.environ["ELASTICSEARCH_URL"],
            # The prefix of one begins with that of the other.
            PREFIX: self.world.stem if name == "alpha" else f"{self.world.stem}-index",
            "RAG_ASSETS_MASTER_KEY_FILE": str(self.world.folder / "master.key"),
            "RAG_ASSETS_DEBUG": "1",
        }
        operated = Operated(self.world, name, Site(home, environment))
        for tenant_id in ("acme", "globex"):
            inside = home / "docs" / tenant_id
            outside = self.world.folder / name / "disk" / tenant_id
            operated.add_tenant(tenant_id, inside if tenant_id == "acme" else outside)
            for number in range(3):
                operated.write(tenant_id, f"{number}.md")
            operated.upload(tenant_id, self.world.new_word())
            operated.push(tenant_id, "page")
        operated.verify()
        return operated

    def take(self, number: int) -> None:
        """Take one step with one of the installations; the other must not change."""
        operated, other = self.random.sample(self.installations, 2)
        names = list(_STEPS)
        weights = [_STEPS[name][1] for name in names]
        [name] = self.random.choices(names, weights)
        self.log.append(f"{number} {operated.name} {name}")
        before = other.fingerprint()
        began = time.monotonic()
        _STEPS[name][0](self, operated)
        self.log[-1] += f" ({time.monotonic() - began:.1f} s)"
        operated.note_places()
        if other in self.installations:
            assert other.fingerprint() == before, f"{other.name} was changed"

    def write_log(self) -> None:
        """Write the steps up to now to a file, and to standard error where the last one failed."""
        (self.world.folder / "walk.log").write_text("\n".join([f"seed {SEED}", *self.log, ""]))
        if sys.exc_info()[0] is not None:
            sys.stderr.write(f"seed {SEED}, the last steps:\n" + "\n".join(self.log[-25:]) + "\n")

    def note(self, text: str) -> None:
        """Add to the present step's line in the log."""
        self.log[-1] += f" {text}"

    def tenant(self, operated: Operated) -> str:
        """One of the tenants."""
        return self.random.choice(sorted(operated.tenants))

    def kill(self, operated: Operated, command: list[str], after: float) -> None:
        """Start a command, and kill it after some seconds unless it has ended."""
        variables = {**operated.site.variables, BLOBS: str(operated.place("blobs"))}
        outcome = self.server.run(*command, kill_after=after, **variables)
        self.note("killed" if outcome.code == KILLED else f"ended with {outcome.code}")

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def other(self, operated: Operated) -> Operated:
        return next(one for one in self.installations if one is not operated)


@pytest.fixture
def walk(
    postgres_url: str,
    elasticsearch_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Walk]:
    monkeypatch.delenv(LAKE, raising=False)
    monkeypatch.setenv("ELASTICSEARCH_URL", elasticsearch_url)
    world = World(tmp_path, postgres_url, elasticsearch_url, f"t{uuid.uuid4().hex[:8]}")
    cache = tmp_path / "server"
    cache.mkdir()
    share_parsers(cache)
    try:
        with fork_server({**os.environ, "RAG_ASSETS_HOME": str(cache)}) as server:
            yield Walk(world, server, SEED)
    finally:
        for index_name in world.indexes():
            world.client.indices.delete(index=index_name)
        world.client.close()
        with psycopg.connect(postgres_url) as connection:
            names = connection.execute(
                "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [world.stem]
            ).fetchall()
        for (name,) in names:
            execute(postgres_url, "DROP DATABASE {} WITH (FORCE)", name)


@pytest.mark.timeout(max(600, 12 * STEPS))
def test_after_any_walk_each_installation_equals_its_sources(walk: Walk) -> None:
    for number in range(1, STEPS + 1):
        try:
            walk.take(number)
            if number % _VERIFY_EVERY == 0 or number == STEPS:
                for operated in walk.installations:
                    operated.verify()
        finally:
            walk.write_log()


# -- sources


@step(10)
def edit_files(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    for _ in range(walk.random.randint(1, 3)):
        files = sorted(operated.tenants[tenant_id].files)
        if len(files) > 2 and walk.chance(0.3):
            operated.delete_file(tenant_id, walk.random.choice(files))
        elif files and walk.chance(0.4):
            operated.write(tenant_id, walk.random.choice(files))
        else:
            operated.write(tenant_id, walk.world.new_name("file") + ".md")
    if walk.chance(0.7):
        operated.settle(tenant_id)


@step(6)
def upload_files(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    uploads = sorted(operated.tenants[tenant_id].uploads)
    if uploads and walk.chance(0.3):
        id_ = walk.random.choice(uploads)
        operated.done("uploads", "delete", tenant_id, id_)
        tenant = operated.tenants[tenant_id]
        tenant.deleted.add(tenant.uploads.pop(id_))
    replaces = walk.random.choice(uploads) if uploads and walk.chance(0.4) else None
    if replaces in operated.tenants[tenant_id].uploads or replaces is None:
        operated.upload(tenant_id, walk.world.new_word(), replaces=replaces)
    if walk.chance(0.5):
        operated.settle(tenant_id)


@step(4)
def push_records(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    operated.push(tenant_id, walk.random.choice(["page", "letter", "plan"]))
    if walk.chance(0.5):
        operated.settle(tenant_id)


@step(4)
def sync_all(walk: Walk, operated: Operated) -> None:
    operated.persist("sync", "--all", *(["--repair"] if walk.chance(0.3) else []))


# -- erasures


@step(6)
def purge(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    command, erased = _purge_of(walk, operated, tenant_id)
    if walk.chance(0.3):
        operated.done("hold", "set", tenant_id, "--reason", "a claim")
        assert "hold lift" in operated.refused(*command)
        operated.done("hold", "lift", tenant_id, "--reason", "it is settled")
    assert "--yes" in operated.refused(*command[:-1])
    operated.erase(*command)
    _note_erased(operated, tenant_id, erased())


def _purge_of(
    walk: Walk, operated: Operated, tenant_id: str
) -> tuple[list[str], Callable[[], list[str]]]:
    """The command that purges a random document, and what it means for the model."""
    tenant = operated.tenants[tenant_id]
    by_uri = operated.documents(tenant_id)
    files = [name for name in sorted(tenant.files) if name not in tenant.kept_out]
    if tenant.uploads and (not files or walk.chance(0.5)):
        id_ = walk.random.choice(sorted(tenant.uploads))
        return ["purge", tenant_id, "--document", id_, "--yes"], lambda: [tenant.uploads.pop(id_)]
    name = walk.random.choice(files)

    def keep_out() -> list[str]:
        tenant.kept_out.add(name)
        return [tenant.files[name]]

    return ["purge", tenant_id, "--document", by_uri[f"files/{name}"], "--yes"], keep_out


def _note_erased(
    operated: Operated, tenant_id: str, words: list[str], *, with_names: bool = True
) -> None:
    if with_names:
        words = [*words, *map(label_of, words)]
    receipt = operated.done("receipts", tenant_id)["receipts"][-1]
    unseen = receipt["proof"].get("places not seen", []) if receipt["proof"] else []
    operated.erased |= dict.fromkeys(words, unseen)
    operated.verify_receipts()


@step(3)
def prune_old_documents(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    tenant = operated.tenants[tenant_id]
    if not tenant.uploads:
        operated.upload(tenant_id, walk.world.new_word())
        operated.settle(tenant_id)
    id_ = walk.random.choice(sorted(tenant.uploads))
    operated.configure(tenant_id, retention_days=100)
    with psycopg.connect(operated.database_url) as connection:
        connection.execute(
            "UPDATE rag_catalog.documents SET embedded_at = now() - interval '101 days'"
            " WHERE tenant = %s AND document_id = %s",
            [tenant_id, id_],
        )
    operated.done("prune", tenant_id)
    operated.configure(tenant_id, retention_days=None)
    # Events of uploads and runs go on naming it; its text is nowhere.
    _note_erased(operated, tenant_id, [tenant.uploads.pop(id_)], with_names=False)


@step(3)
def remove_and_add_tenant(walk: Walk, operated: Operated) -> None:
    tenant_id = walk.tenant(operated)
    folder = operated.tenants[tenant_id].folder
    if walk.chance(0.5):
        operated.unlist(tenant_id)
    assert "--yes" in operated.refused("tenants", "remove", tenant_id)
    _end_removal(operated, tenant_id)
    if folder.exists():
        shutil.rmtree(folder)
    operated.add_tenant(tenant_id, folder)
    for number in range(2):
        operated.write(tenant_id, f"{number}.md")
    operated.settle(tenant_id)
    operated.upload(tenant_id, walk.world.new_word())


def _end_removal(operated: Operated, tenant_id: str) -> None:
    """Remove a tenant, unless a command that was killed has; the receipt must be true."""
    if tenant_id in {one["id"] for one in operated.done("tenants", "list")["tenants"]}:
        operated.erase("tenants", "remove", tenant_id, "--yes")
    tenant = operated.tenants.pop(tenant_id)
    words = {*tenant.words(), *tenant.files.values(), *tenant.deleted}
    _note_erased(operated, tenant_id, sorted(words))


# -- jobs


@step(3)
def daily_jobs(walk: Walk, operated: Operated) -> None:
    run_jobs(operated, is_weekly=False)


@step(5)
def weekly_jobs(walk: Walk, operated: Operated) -> None:
    for tenant_id in operated.tenants:
        operated.settle(tenant_id)
    if walk.chance(0.5):
        run_jobs(operated, is_weekly=True)
    else:
        operated.persist("compact")
    operated.verify_compacted()


def run_jobs(operated: Operated, *, is_weekly: bool) -> None:
    """Run every job that a schedule starts, as the daemon does."""
    with operated.site.session() as session:
        for schedule in repository().schedule_defs:
            if schedule.cron_schedule.endswith("0") != is_weekly:
                continue
            tick = schedule.evaluate_tick(dg.build_schedule_context(session.instance))
            for request in tick.run_requests or ():
                job = repository().get_job(schedule.job_name)
                result = job.execute_in_process(
                    instance=session.instance, run_config=request.run_config, raise_on_error=False
                )
                assert result.success, (schedule.name, _failure_of(result))


def _failure_of(result: dg.ExecuteInProcessResult) -> str:
    return "; ".join(
        str(event.step_failure_data.error_display_string)
        for event in result.all_events
        if event.is_step_failure
    )


# -- moves


@step(4)
def change_prefix(walk: Walk, operated: Operated) -> None:
    before = operated.fingerprint()
    former = operated.environment[PREFIX]
    operated.environment[PREFIX] = walk.world.new_name(f"{walk.world.stem}-p")
    assert "installation move" in operated.refused("sync", walk.tenant(operated))
    assert operated.fingerprint() == before
    if walk.chance(0.3):
        operated.environment[PREFIX] = former
        return
    operated.persist("tenants", "list", through=_MOVE)
    operated.verify()


@step(5)
def move_store(walk: Walk, operated: Operated) -> None:
    """Move lake or blobs to another folder; leave the former one, or take it away."""
    kind = walk.random.choice(["lake", "blobs"])
    former = operated.place(kind)
    place = walk.world.folder / walk.world.new_name(f"{operated.name}-{kind}")
    operated.environment[_VARIABLES[kind]] = str(place)
    assert "installation move" in operated.refused("sync", walk.tenant(operated))
    if former.exists() and any(former.rglob("*.*")):
        assert "is empty" in operated.refused("installation", "move", "--yes")
    shutil.rmtree(place, ignore_errors=True)
    if walk.chance(0.5):
        copy_folder(former, place)
    else:
        walk.note(f"renames {kind}")
        former.rename(place)
    operated.persist("tenants", "list", through=_MOVE)
    operated.note_places()


@step(3)
def move_home(walk: Walk, operated: Operated) -> None:
    _relocate_home(walk, operated, by_copy=walk.chance(0.5))


def _relocate_home(walk: Walk, operated: Operated, *, by_copy: bool) -> None:
    """Move a home folder; to another disk it is copied, and the original deleted."""
    former = operated.site.home
    home = walk.world.folder / walk.world.new_name(operated.name) / "home"
    home.parent.mkdir()
    if by_copy:
        walk.note("by copy")
        copy_folder(former, home)
        shutil.rmtree(former)
    else:
        former.rename(home)
    operated.move_home(home)
    operated.persist("tenants", "list", through=_MOVE)
    operated.note_places()


@step(3)
def move_catalog(walk: Walk, operated: Operated) -> None:
    operated.move_database(walk.world.new_name(f"{walk.world.stem}{operated.name[0]}"))
    refusal = operated.refused("tenants", "list")
    assert "installation move" in refusal
    assert "installation clone" in refusal
    operated.persist("tenants", "list", through=_MOVE)


# -- mistakes


@step(3)
def copied_home(walk: Walk, operated: Operated) -> None:
    """Run commands in a copy of the home folder that was made for a test."""
    before = operated.fingerprint()
    home = walk.world.folder / walk.world.new_name("copy")
    copy_folder(operated.site.home, home)
    duplicate = Operated(walk.world, "copy", Site(home, operated.environment))
    tenant_id = walk.tenant(operated)
    for command in (
        ("sync", tenant_id),
        ("tenants", "remove", tenant_id, "--yes"),
        ("compact",),
        ("tenants", "list"),
    ):
        refusal = duplicate.refused(*command)
        assert "installation clone" in refusal or "RAG_ASSETS_HOME" in refusal
    assert operated.fingerprint() == before
    shutil.rmtree(home)


@step(4)
def wrong_address(walk: Walk, operated: Operated) -> None:
    """Use the catalog, the store or the prefix of the other installation."""
    other = walk.other(operated)
    before = operated.fingerprint()
    name = walk.random.choice(["DATABASE_URL", PREFIX, LAKE, BLOBS])
    values = {
        "DATABASE_URL": other.database_url,
        PREFIX: other.environment[PREFIX],
        LAKE: str(other.place("lake")),
        BLOBS: str(other.place("blobs")),
    }
    walk.note(name)
    tenant_id = walk.tenant(operated)
    for command in (("sync", tenant_id), ("tenants", "list"), ("compact",)):
        refusal = operated.refused(*command, **{name: values[name]})
        assert name in refusal
    if name != PREFIX:
        operated.refused("installation", "move", "--yes", **{name: values[name]})
    assert operated.fingerprint() == before


@step(2)
def second_home(walk: Walk, operated: Operated) -> None:
    """Use the catalog from another home folder, as a second machine does."""
    home = walk.world.folder / walk.world.new_name("worker")
    home.mkdir()
    share_parsers(home)
    places = {LAKE: str(operated.place("lake")), BLOBS: str(operated.place("blobs"))}
    worker = Site(home, {**operated.environment, **places})
    states = {one["id"]: one["state"] for one in worker.done("tenants", "list")["tenants"]}
    assert states == dict.fromkeys(operated.tenants, "ACTIVE")
    assert worker.run("compact").code == 0
    # Roots in tenants.yaml of the first home are absolute in the catalog.
    assert worker.run("sync", walk.tenant(operated)).code == 0
    states = {one["id"]: one["state"] for one in operated.done("tenants", "list")["tenants"]}
    assert states == dict.fromkeys(operated.tenants, "ACTIVE")
    shutil.rmtree(home)


# -- losses


@step(4)
def lose_index(walk: Walk, operated: Operated) -> None:
    """Lose indexes, entries or an alias in Elasticsearch."""
    client, tenant_id = walk.world.client, walk.tenant(operated)
    operated.settle(tenant_id)
    indexes = operated.indexes()
    kind = walk.random.choice(["indexes", "entries", "alias"])
    walk.note(kind)
    if kind == "indexes":
        for name in indexes:
            client.indices.delete(index=name)
    elif kind == "entries":
        for name in indexes:
            walk.world.delete_entries(name, tenant_id)
    else:
        for name, body in indexes.items():
            for alias in body["aliases"]:
                client.indices.delete_alias(index=name, name=alias)
    operated.verify()


@step(3)
def lose_lake(walk: Walk, operated: Operated) -> None:
    shutil.rmtree(operated.place("lake"))
    for tenant_id in operated.tenants:
        operated.persist("sync", tenant_id, "--repair", through=["sync"])
    operated.verify()


@step(2)
def restore_blobs(walk: Walk, operated: Operated) -> None:
    """Lose all uploaded files, and copy them back from a backup."""
    place, backup = operated.place("blobs"), walk.world.folder / walk.world.new_name("backup")
    copy_folder(place, backup)
    shutil.rmtree(place)
    operated.run("sync", walk.tenant(operated))
    shutil.rmtree(place, ignore_errors=True)
    copy_folder(backup, place)
    shutil.rmtree(backup)
    operated.verify()


@step(5)
def unmount_source(walk: Walk, operated: Operated) -> None:
    """Take the disk of a source away; its mount point is missing, or an empty folder."""
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    folder = operated.tenants[tenant_id].folder
    before = operated.words(tenant_id)
    away = folder.with_name(f"{folder.name}.away")
    folder.rename(away)
    if walk.chance(0.6):
        walk.note("to an empty folder")
        folder.mkdir()
    for _ in range(2):
        operated.run("sync", tenant_id)
    if walk.chance(0.3):
        operated.run("compact")
    assert operated.words(tenant_id) == before
    if folder.exists():
        folder.rmdir()
    away.rename(folder)
    operated.settle(tenant_id)
    assert operated.words(tenant_id) == before


@step(2)
def empty_source(walk: Walk, operated: Operated) -> None:
    """Delete all files of a source on purpose."""
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    for name in sorted(operated.tenants[tenant_id].files):
        operated.delete_file(tenant_id, name)
    operated.settle(tenant_id)
    operated.write(tenant_id, "again.md")
    operated.settle(tenant_id)


# -- kills


@step(8)
def kill_command(walk: Walk, operated: Operated) -> None:
    """Kill a command at a random moment; the next one ends its work."""
    tenant_id = walk.tenant(operated)
    operated.write(tenant_id, walk.world.new_name("file") + ".md")
    kind = walk.random.choice(["sync", "compact", "repair", "purge", "remove", "move"])
    after = walk.random.uniform(0.05, 1.5)
    walk.note(f"{kind} after {after:.2f} s")
    if kind == "purge":
        operated.settle(tenant_id)
        command, erased = _purge_of(walk, operated, tenant_id)
        walk.kill(operated, command, after)
        # Where the purge was decided, the next run ends it; where it was not, it is asked again.
        operated.run(*command)
        operated.settle(tenant_id)
        _note_erased(operated, tenant_id, erased())
    elif kind == "remove":
        folder = operated.tenants[tenant_id].folder
        operated.unlist(tenant_id)
        walk.kill(operated, ["tenants", "remove", tenant_id, "--yes"], after)
        _end_removal(operated, tenant_id)
        shutil.rmtree(folder)
        operated.add_tenant(tenant_id, folder)
        operated.write(tenant_id, "1.md")
    elif kind == "move":
        operated.environment[PREFIX] = walk.world.new_name(f"{walk.world.stem}-p")
        walk.kill(operated, ["installation", "move", "--yes"], after)
        operated.persist("tenants", "list", through=_MOVE)
    else:
        command = {
            "sync": ["sync", tenant_id],
            "repair": ["sync", tenant_id, "--repair"],
            "compact": ["compact"],
        }[kind]
        walk.kill(operated, command, after)
        operated.persist(*command)
    operated.verify()
