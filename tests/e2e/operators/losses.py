"""Steps that lose data and restore it, set clocks wrong, and kill commands."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

import psycopg
from psycopg import sql

from tests.databases import execute
from tests.e2e.operators.everyday import end_removal, note_erased, purge, purge_of, run_jobs
from tests.e2e.operators.model import PREFIX, Dump, Operated, copy_folder
from tests.e2e.operators.walk import MOVE, Walk, step

_MOST_DUMPS = 2
_SHIFTED = (
    "SELECT table_name, column_name FROM information_schema.columns"
    " JOIN information_schema.tables USING (table_schema, table_name)"
    " WHERE table_schema = 'rag_catalog' AND table_type = 'BASE TABLE'"
    " AND data_type = 'timestamp with time zone' AND is_generated = 'NEVER'"
    " AND table_name <> 'receipts'"
)

# -- stores


@step(4)
def lose_index(walk: Walk, operated: Operated) -> None:
    """Delete indexes, entries or an alias in Elasticsearch."""
    client, tenant_id = walk.world.client, walk.tenant(operated)
    operated.settle(tenant_id)
    indexes = operated.indexes()
    kind = walk.random.choice(["indexes", "entries", "alias"])
    walk.note(kind)
    for name, body in indexes.items():
        if kind == "indexes":
            client.indices.delete(index=name)
        elif kind == "entries":
            walk.world.delete_entries(name, tenant_id)
        else:
            for alias in body["aliases"]:
                client.indices.delete_alias(index=name, name=alias)
    operated.verify()


@step(3)
def lose_lake(walk: Walk, operated: Operated) -> None:
    shutil.rmtree(operated.place("lake"))
    for tenant_id in operated.tenants:
        operated.persist("sync", tenant_id, "--repair", through=["sync"])
    operated.verify()


@step(3)
def unmount_store(walk: Walk, operated: Operated) -> None:
    """Unmount the lake or the blob store for a while."""
    kind = walk.random.choice(["lake", "blobs"])
    walk.note(kind)
    place = operated.place(kind)
    away = place.with_name(f"{place.name}.away")
    place.rename(away)
    if kind == "blobs" and any(tenant.uploads for tenant in operated.tenants.values()):
        for command in (("sync", walk.tenant(operated)), ("compact",)):
            assert "mount" in operated.refused(*command)
    else:
        operated.run("sync", walk.tenant(operated))
    shutil.rmtree(place, ignore_errors=True)
    away.rename(place)
    for tenant_id in operated.tenants:
        operated.persist("sync", tenant_id, "--repair", through=["sync"])
    operated.verify()


@step(2)
def restore_store(walk: Walk, operated: Operated) -> None:
    """Lose the lake or the blob store, and restore it from a backup with an erased document."""
    kind = walk.random.choice(["lake", "blobs"])
    walk.note(kind)
    place, backup = operated.place(kind), walk.world.folder / walk.world.new_name("backup")
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    copy_folder(place, backup)
    purge(walk, operated)
    shutil.rmtree(place)
    copy_folder(backup, place)
    shutil.rmtree(backup)
    for tenant_id in operated.tenants:
        operated.persist("sync", tenant_id, "--repair", through=["sync"])
    operated.age_blobs()
    operated.persist("compact")
    operated.verify()


# -- sources


@step(5)
def unmount_source(walk: Walk, operated: Operated) -> None:
    """Unmount a source: its mount point is missing, or an empty folder."""
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
    """Delete all files of a source intentionally."""
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    for name in sorted(operated.tenants[tenant_id].files):
        operated.delete_file(tenant_id, name)
    operated.settle(tenant_id)
    operated.write(tenant_id, "again.md")
    operated.settle(tenant_id)


# -- the catalog


@step(4)
def dump_catalog(walk: Walk, operated: Operated) -> None:
    if len(operated.dumps) == _MOST_DUMPS:
        dropped = operated.dumps.pop(0)
        execute(walk.world.postgres_url, "DROP DATABASE {}", dropped.database)
    operated.dump()


@step(5)
def restore_catalog(walk: Walk, operated: Operated) -> None:
    """Replace the catalog with an earlier dump, and continue with it."""
    if not operated.dumps:
        operated.dump()
        tenant_id = walk.tenant(operated)
        operated.upload(tenant_id, walk.world.new_word())
        operated.settle(tenant_id)
    dump = walk.random.choice(operated.dumps)
    lost = walk.random.choice(["nothing", "nothing", "lake", "indexes"])
    walk.note(f"{dump.database}, losing {lost}")
    operated.put_back(dump)
    operated.age_blobs()
    if lost == "lake":
        shutil.rmtree(operated.place("lake"))
    elif lost == "indexes":
        for name in operated.indexes():
            walk.world.client.indices.delete(index=name)
    if walk.chance(0.5):
        _work_without_noticing(walk, operated)
    _accept(operated, dump)
    operated.verify()
    operated.persist("compact")
    operated.verify_compacted()
    operated.verify_receipts()


def _work_without_noticing(walk: Walk, operated: Operated) -> None:
    """Run what would run automatically before the operator notices the restore."""
    operated.run("sync", walk.tenant(operated))
    if walk.chance(0.5):
        operated.run("compact")
    else:
        run_jobs(operated, is_weekly=walk.chance(0.5), must_succeed=False)


def _accept(operated: Operated, dump: Dump) -> None:
    """Accept the restored catalog, and add what it lacks."""
    before = {id_: set(tenant.uploads.values()) for id_, tenant in operated.tenants.items()}
    _require_uploads(operated, before)
    # The dump may predate a move, or the acceptance of the clock.
    operated.persist("tenants", "list", through=MOVE)
    operated.run("installation", "accept-clock", "--yes")
    lost = operated.done("installation", "accept-restore", "--yes")["lost"]
    assert operated.run("installation", "accept-restore").code == 0
    for tenant_id in {one["tenant"] for one in lost if one["kind"] == "tenant_removed"}:
        _remove_again(operated, tenant_id)
    _require_uploads(operated, before)
    for tenant_id, tenant in operated.tenants.items():
        if tenant_id in dump.tenants and not tenant.is_new_since(dump.tenants[tenant_id]):
            former = dump.tenants[tenant_id]
            tenant.deleted |= former.deleted | former.words() - tenant.words()
    operated.persist("sync", "--all", "--accept-catalog")
    for tenant_id, tenant in operated.tenants.items():
        _upload_again(operated, tenant_id, before[tenant_id])
        for name, word in sorted(tenant.records.items()):
            operated.push(tenant_id, name, word)


def _require_uploads(operated: Operated, uploads: Mapping[str, set[str]]) -> None:
    """Fail if uploads are lost that a restored catalog lacks, before it is accepted."""
    for tenant_id, words in uploads.items():
        for word in words:
            assert operated.has_blob(tenant_id, word), (tenant_id, word, "an upload is lost")


def _remove_again(operated: Operated, tenant_id: str) -> None:
    """Remove a tenant that a restored catalog has again, then add its present namesake again."""
    tenant = operated.tenants[tenant_id]
    operated.unlist(tenant_id)
    operated.erase("tenants", "remove", tenant_id, "--yes")
    operated.list_again(tenant_id, tenant)


def _upload_again(operated: Operated, tenant_id: str, words: set[str]) -> None:
    """Delete uploads without a file, and upload files that the catalog does not know."""
    tenant = operated.tenants[tenant_id]
    tenant.uploads = {}
    for upload in operated.done("uploads", "list", tenant_id)["uploads"]:
        word = upload["file_name"].removesuffix(".md").replace("label", "lantern")
        if word in words and operated.has_blob(tenant_id, word):
            tenant.uploads[upload["id"]] = word
        else:
            operated.done("uploads", "delete", tenant_id, upload["id"])
    for word in sorted(words - set(tenant.uploads.values())):
        operated.upload(tenant_id, word)


# -- clocks


@step(4)
def set_clock_ahead(walk: Walk, operated: Operated) -> None:
    """Set all clocks ahead, which is simulated by making all times in the catalog older."""
    tenant_id = walk.tenant(operated)
    operated.settle(tenant_id)
    is_right = walk.chance(0.4)
    days = 3 if is_right else 400
    walk.note(f"by {days} days")
    operated.configure(tenant_id, retention_days=365)
    _shift_times(operated, days)
    for _ in range(2):
        operated.run("sync", tenant_id)
    operated.run("prune", tenant_id)
    if walk.chance(0.5):
        run_jobs(operated, is_weekly=walk.chance(0.5), must_succeed=False)
    assert operated.words(tenant_id).keys() == operated.tenants[tenant_id].words()
    for word in operated.tenants[tenant_id].uploads.values():
        assert operated.has_blob(tenant_id, word)
    if is_right:
        refusal = operated.refused("prune", tenant_id, "--confirm")
        assert "accept-clock" in refusal
        assert operated.run("installation", "accept-clock").code == 1
        assert operated.run("installation", "accept-clock", "--yes").code == 0
    else:
        _shift_times(operated, -days)
    assert operated.run("prune", tenant_id, "--confirm").code == 0
    operated.configure(tenant_id, retention_days=None)
    operated.verify()


def _shift_times(operated: Operated, days: int) -> None:
    """Subtract so many days from all recorded times in the catalog and its dumps."""
    for url in operated.database_urls:
        with psycopg.connect(url) as connection:
            for table, column in connection.execute(_SHIFTED).fetchall():
                statement = sql.SQL(
                    "UPDATE rag_catalog.{} SET {} = {} - {} * interval '1 day' WHERE isfinite({})"
                )
                names = [sql.Identifier(name) for name in (table, column, column, column)]
                connection.execute(statement.format(*names[:3], days, names[3]))


# -- kills


@step(8)
def kill_command(walk: Walk, operated: Operated) -> None:
    """Kill a command at a random moment; the next command completes its work."""
    tenant_id = walk.tenant(operated)
    operated.write(tenant_id, walk.world.new_name("file") + ".md")
    kind = walk.random.choice(["sync", "compact", "repair", "purge", "remove", "move"])
    after = walk.random.uniform(0.05, 1.5)
    walk.note(f"{kind} after {after:.2f} s")
    if kind == "purge":
        operated.settle(tenant_id)
        command, erased = purge_of(walk, operated, tenant_id)
        walk.kill(operated, command, after)
        # If the purge was recorded, the next run completes it; otherwise it is repeated.
        operated.run(*command)
        operated.settle(tenant_id)
        note_erased(operated, tenant_id, erased())
    elif kind == "remove":
        folder = operated.tenants[tenant_id].folder
        operated.unlist(tenant_id)
        walk.kill(operated, ["tenants", "remove", tenant_id, "--yes"], after)
        end_removal(operated, tenant_id)
        shutil.rmtree(folder)
        operated.add_tenant(tenant_id, folder)
        operated.write(tenant_id, "1.md")
    elif kind == "move":
        operated.environment[PREFIX] = walk.world.new_name(f"{walk.world.stem}-p")
        walk.kill(operated, ["installation", "move", "--yes"], after)
        operated.persist("tenants", "list", through=MOVE)
    else:
        command = {
            "sync": ["sync", tenant_id],
            "repair": ["sync", tenant_id, "--repair"],
            "compact": ["compact"],
        }[kind]
        walk.kill(operated, command, after)
        operated.persist(*command)
    operated.verify()
