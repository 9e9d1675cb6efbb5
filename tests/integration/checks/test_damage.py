"""Twelve kinds of damage that bypass the project: each is named correctly, and repaired.

All tenants are in one installation and are damaged together, so one nightly run and one run of the
checks are enough.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
from sqlalchemy import Table, delete, insert, select, update

from rag_assets.checks.tenant_check import DEEP_TAG
from rag_assets.cli.runs import Runner
from rag_assets.declarations import PLAIN
from rag_assets.ingest.sources.model import ListingFacts
from rag_assets.pipeline.mark_keeper import accept_catalog
from rag_assets.pipeline.repair import repair_tenant
from rag_assets.sensors.drift import drift_offenders_sensor
from rag_assets.storage.catalog.records.model import PushedRecord
from rag_assets.storage.catalog.tables import (
    catalog_marks,
    document_index,
    documents,
    source_records,
    syncs,
)
from rag_assets.storage.index.elasticsearch.mapping import build_index_body
from rag_assets.storage.index.model import IndexSpec, entry_id
from tests.driving import Driver
from tests.dumps import invert_bytes, is_blob
from tests.embedding_server import EmbeddingServer, embedding_server
from tests.installation import Installation
from tests.integration.checks.faults import ALL, DOCUMENTS, EXPECTATIONS, CheckedTenant
from tests.integration.checks.test_evaluation import Clock
from tests.records import put_record
from tests.sensor_resources import sensor_resources

pytestmark = pytest.mark.long

DRIFT, ISOLATION = "search_index.drift", "search_index.isolation"
LAKE, STORED = "embeddings.lake", "raw_documents.stored"
CONTENTS, CATALOG = "raw_documents.contents", "raw_documents.catalog"
CHECKS = ALL - EXPECTATIONS - {"embeddings.canary"}
"""Those of the stores that are damaged here: the others look at vectors and rows one by one."""
RELATIONS = "search_index.relations"
BESIDE = "search_index.vectors_beside"
BY_NIGHT = {DRIFT, LAKE, STORED, CONTENTS, CATALOG, RELATIONS, BESIDE}
NOWHERE_ELSE = {"record-altered": "records", "upload-altered": "uploads"}
"""Tenants with contents that no other store has, with the type of their source."""
ALONE = {"index": {"placement": "dedicated"}}


@dataclass(frozen=True)
class Damage:
    """A kind of damage.

    Attributes:
        do: damages a tenant.
        named: the faults that checks must name, by check.
        alone: whether the tenant needs an index of its own.
        embeds: the number of texts that the repair embeds.
    """

    do: Callable[[CheckedTenant], None]
    named: Mapping[str, set[str]]
    alone: bool = False
    embeds: int = 0


def some_entry(tenant: CheckedTenant) -> tuple[str, dict[str, Any]]:
    return min(tenant.entries("rollback.md").items())


def delete_entries(tenant: CheckedTenant) -> None:
    for id_ in tenant.entries("rollback.md"):
        tenant.delete_entry(id_)


def add_entry(tenant: CheckedTenant) -> None:
    _, fields = some_entry(tenant)
    added = entry_id(tenant.owner, fields["document_id"], fields["index_key"], 99)
    tenant.write_entry(added, {**fields, "ordinal": 99})


def alter_entry(tenant: CheckedTenant) -> None:
    id_, fields = some_entry(tenant)
    tenant.write_entry(id_, {**fields, "index_key": "0" * 32, "text": "Nothing of the kind."})


def give_entry_away(tenant: CheckedTenant) -> None:
    id_, fields = some_entry(tenant)
    tenant.write_entry(id_, {**fields, "tenant": "somebody-else"})


def alter_vector(tenant: CheckedTenant) -> None:
    id_, fields = some_entry(tenant)
    tenant.write_entry(id_, {**fields, "vector": list(reversed(fields["vector"]))})


def delete_index(tenant: CheckedTenant) -> None:
    tenant.elasticsearch.indices.delete(index=tenant.generation.index_name)


def replace_index(tenant: CheckedTenant) -> None:
    name = tenant.generation.index_name
    meta = tenant.elasticsearch.indices.get_mapping(index=name)[name]["mappings"]["_meta"]
    delete_index(tenant)
    spec = IndexSpec(tenant.generation.dimensions, "bbq_hnsw")
    tenant.elasticsearch.indices.create(index=name, **build_index_body(spec, meta))


def lake_files(tenant: CheckedTenant, table: str) -> list[Path]:
    files = (Path(tenant.ctx.lake._location.url) / table).rglob("*.parquet")
    return sorted(file for file in files if "_delta_log" not in file.parts)


def remove_lake_file(tenant: CheckedTenant) -> None:
    for file in lake_files(tenant, "embeddings"):
        file.unlink()


def cut_lake_file(tenant: CheckedTenant) -> None:
    for table in ("chunks", "embeddings"):
        for file in lake_files(tenant, table):
            os.truncate(file, file.stat().st_size - 100)


def invert_lake_pages(tenant: CheckedTenant) -> None:
    """Alter the first page of each file, without changing size and footer."""
    for file in lake_files(tenant, "."):
        invert_bytes(file, 20, 40)


def invert_vectors(tenant: CheckedTenant) -> None:
    """Alter the last bits of a vector's number, so that only its checksum reveals it."""
    for file in lake_files(tenant, "embeddings"):
        vector = pl.read_parquet(file)["vector"][0]
        invert_bytes(file, file.read_bytes().index(vector), 1)


def cut_lake_log(tenant: CheckedTenant) -> None:
    for table in ("parsed_text", "embeddings"):
        for log in (Path(tenant.ctx.lake._location.url) / table).rglob("*0.json"):
            os.truncate(log, 10)


def alter_record(tenant: CheckedTenant) -> None:
    with tenant.ctx.catalog.database.begin() as connection:
        mine = source_records.c.tenant == tenant.name
        connection.execute(update(source_records).where(mine).values(text="Otherwise."))


def alter_upload(tenant: CheckedTenant) -> None:
    ctx = tenant.ctx
    root = Path(ctx.settings.blobs_url) / ctx.ref.id / str(ctx.ref.incarnation) / "blobs"
    [blob] = [path for path in root.rglob("*") if is_blob(path)]
    blob.chmod(0o600)
    blob.write_bytes(b"x" * blob.stat().st_size)


def alter_file(tenant: CheckedTenant) -> None:
    """Change a file's content and restore its times."""
    path = tenant.folder / "oncall.md"
    facts = tenant.document("oncall.md").facts
    altered = path.read_bytes().replace(b"ten minutes", b"two minutes")
    assert len(altered) == facts.size
    path.write_bytes(altered)
    os.utime(path, ns=(facts.mtime_ns, facts.mtime_ns))


DAMAGES: dict[str, Damage] = {
    "entries-deleted": Damage(delete_entries, {DRIFT: {"missing entries"}}),
    "entry-added": Damage(add_entry, {DRIFT: {"orphaned entry"}}),
    "entry-altered": Damage(
        alter_entry,
        {
            DRIFT: {"altered entries"},
            ISOLATION: {"was not written for this tenant: its id does not match its fields"},
        },
    ),
    "entry-given-away": Damage(
        give_entry_away,
        {DRIFT: {"foreign entry"}, ISOLATION: {"has the id of tenant 'somebody-else'"}},
    ),
    "vector-altered": Damage(alter_vector, {DRIFT: {"altered vectors"}}),
    "index-deleted": Damage(delete_index, {DRIFT: {"index is missing"}}, alone=True),
    "index-replaced": Damage(replace_index, {DRIFT: {"index was replaced"}}, alone=True),
    "lake-file-removed": Damage(
        remove_lake_file, {LAKE: {"file is missing", "a vector is missing"}}
    ),
    "lake-file-cut": Damage(
        cut_lake_file, {LAKE: {"file has a wrong size", "its chunks are missing"}}
    ),
    "lake-page-inverted": Damage(
        invert_lake_pages,
        {
            LAKE: {
                "file cannot be read",
                "its text is missing",
                "its chunks are missing",
            }
        },
    ),
    "lake-vectors-inverted": Damage(
        invert_vectors, {LAKE: {"file was altered: rows differ from their checksums"}}
    ),
    "lake-log-cut": Damage(
        cut_lake_log,
        {LAKE: {"file cannot be read", "its text is missing", "a vector is missing"}},
    ),
    "record-altered": Damage(alter_record, {STORED: {"record was altered"}}),
    "upload-altered": Damage(alter_upload, {STORED: {"uploaded file was altered"}}),
    "file-altered": Damage(alter_file, {CONTENTS: {"content changed unnoticed"}}, embeds=1),
    "undamaged": Damage(lambda tenant: None, {}),
}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddingServer]:
    with pytest.MonkeyPatch.context() as patch, embedding_server() as made:
        patch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        made.dimensions = 384
        yield made


@pytest.fixture(scope="module")
def tenants(
    shared_installation: Installation, driver: Driver, server: EmbeddingServer
) -> Mapping[str, CheckedTenant]:
    """Create a synced tenant for each kind of damage."""
    embedder = {
        "provider": "openai-compatible",
        "model": "house-model",
        "dimensions": server.dimensions,
        "base_url": server.url,
    }
    runner = Runner(shared_installation.session())
    made = {}
    for name, damage in DAMAGES.items():
        config: dict[str, Any] = {"embedder": embedder, "drift": {"days": 1}}
        folder = shared_installation.add_tenant(name, **config, **(ALONE if damage.alone else {}))
        if name in NOWHERE_ELSE:
            sources = [
                {"name": "files", "type": "files", "root": str(folder)},
                {"name": "pushed", "type": NOWHERE_ELSE[name]},
            ]
            shared_installation.configure(name, sources=sources)
        write_files(folder)
        if name == "record-altered":
            push(shared_installation, name)
        elif name == "upload-altered":
            upload(shared_installation, name)
        driver.sync(name)
        made[name] = CheckedTenant(shared_installation, runner, name, folder)
    return made


def write_files(folder: Path) -> None:
    for file_name, text in DOCUMENTS.items():
        path = folder / file_name
        path.write_text(text)
        before = path.stat().st_mtime_ns - 60 * 10**9
        os.utime(path, ns=(before, before))  # older than the listing, so it can be relied on


def push(installation: Installation, name: str) -> None:
    from rag_assets.ingest.sources.model import SourceMetadata

    catalog = installation.session().catalog
    record = PushedRecord("pushed", "page", "1", "Pushed text.", "text/markdown", SourceMetadata())
    put_record(catalog.records, catalog.tenants.get(name).ref, record, scope="public")


def upload(installation: Installation, name: str) -> None:
    path = installation.home.parent / "uploaded.md"
    path.write_text("# Uploaded\n\nA file that lies in no folder.\n")
    answer = installation.command("uploads", "add", name, str(path))
    assert answer.code == 0, answer.err


@pytest.fixture(scope="module")
def clock(tenants: Mapping[str, CheckedTenant], shared_installation: Installation) -> Clock:
    return Clock(shared_installation.session())


@pytest.fixture(scope="module", autouse=True)
def _times_of_changes() -> Iterator[None]:
    """Ignore the change times of files, which no program can set."""
    real = ListingFacts.__eq__

    def equal(self: ListingFacts, other: object) -> bool:
        if not isinstance(other, ListingFacts):
            return False
        return real(replace(self, ctime_ns=0), replace(other, ctime_ns=0))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ListingFacts, "__eq__", equal)
        yield


def named(clock: Clock, tenant_id: str, checks: set[str] | None = None) -> dict[str, set[str]]:
    """Return the faults in the latest evaluations of a tenant's failing checks."""
    found = {}
    for name, result in clock.results(tenant_id).items():
        assert result.error is None, (tenant_id, name, result.error)
        if result.passed or (checks is not None and name not in checks):
            continue
        found[name] = {offender["fault"] for offender in offenders(clock, name, tenant_id)}
    return found


def offenders(clock: Clock, check: str, tenant_id: str) -> list[Mapping[str, Any]]:
    """Return the offenders that the page of the latest evaluation shows."""
    from dagster._core.storage.event_log.base import PartitionKeyFilter

    asset, name = check.split(".")
    [newest] = clock.session.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(dg.AssetKey(asset), name),
        limit=1,
        partition_filter=PartitionKeyFilter(key=tenant_id),
    )
    assert newest.event is not None
    assert newest.event.dagster_event is not None
    data = newest.event.dagster_event.asset_check_evaluation_data
    shown = data.metadata.get("first offenders")
    return [] if shown is None else [dict(record.data) for record in shown.records]


def check(clock: Clock, *tenant_ids: str, checks: set[str] = CHECKS) -> None:
    """Evaluate checks of several tenants, as `rag-assets check --deep` does for one."""
    config = {"tenants": [*tenant_ids], "checks": sorted(checks)}
    done = clock.repository.get_job("check_all_tenants").execute_in_process(
        instance=clock.session.instance,
        run_config={"ops": {"evaluate_checks": {"config": config}}},
        tags={DEEP_TAG: "true"},
    )
    assert done.success


def nightly(clock: Clock) -> None:
    assert clock.tick_schedule("nightly_drift") == [True]


def test_each_damage_is_named_rightly_and_repaired(
    clock: Clock,
    tenants: Mapping[str, CheckedTenant],
    driver: Driver,
    server: EmbeddingServer,
    shared_installation: Installation,
) -> None:
    before = {name: shared_installation.entries(name) for name in tenants}
    vectors = {name: vectors_of(tenant) for name, tenant in tenants.items()}
    for name, tenant in tenants.items():
        DAMAGES[name].do(tenant)

    nightly(clock)
    for name, damage in DAMAGES.items():
        expected = {check: faults for check, faults in damage.named.items() if check in BY_NIGHT}
        assert named(clock, name) == expected, name
    check(clock, *tenants)
    for name, damage in DAMAGES.items():
        assert named(clock, name) == dict(damage.named), name

    for name, tenant in tenants.items():
        asked = sum(map(len, server.requests))
        with driver.locked(name) as ctx:
            found = repair_tenant(ctx)
        assert found.is_healthy == (name in {"undamaged", *NOWHERE_ELSE}), name
        driver.sync(name)
        assert sum(map(len, server.requests)) - asked == DAMAGES[name].embeds, name
        if name != "file-altered":
            assert shared_installation.entries(name) == before[name], name
            assert vectors_of(tenant) == vectors[name], f"{name}: bit by bit"
        assert shared_installation.search(name, "Roll back with the previous tag.", mode="text")

    nightly(clock)
    left = {name: named(clock, name, BY_NIGHT) for name in tenants}
    # Pushed and uploaded originals exist nowhere else: they must be sent again.
    for name in NOWHERE_ELSE:
        assert left.pop(name) == DAMAGES[name].named, name
    assert all(not faults for faults in left.values()), left
    upload(shared_installation, "upload-altered")
    check(clock, "upload-altered", checks={STORED})
    assert named(clock, "upload-altered", {STORED}) == {}


def vectors_of(tenant: CheckedTenant) -> dict[str, bytes]:
    """Return the vectors in the lake of a tenant."""
    ctx = tenant.ctx
    embedder_id = ctx.embedder.embedder_id
    fresh = tenant.installation.context(tenant.name).lake
    frame = fresh.stored_vectors(embedder_id, fresh.read_vector_hashes(embedder_id))
    return dict(zip(frame["text_sha256"], frame["vector"], strict=True))


def test_what_no_store_has_is_told_and_embedded(
    clock: Clock,
    tenants: Mapping[str, CheckedTenant],
    driver: Driver,
    server: EmbeddingServer,
) -> None:
    tenant = tenants["undamaged"]
    texts = len(vectors_of(tenant))
    remove_lake_file(tenant)
    delete_entries(tenant)
    gone = texts - len(tenant.entries("oncall.md")) - len(tenant.entries("leave.md"))
    check(clock, "undamaged", checks={LAKE})
    description = clock.results("undamaged")[LAKE].description or ""
    assert f"{gone} texts will be embedded again, because no store has their vectors" in description
    asked = sum(map(len, server.requests))
    with driver.locked("undamaged") as ctx:
        assert f"{gone} texts will be embedded again" in " ".join(repair_tenant(ctx).lines())
    assert driver.sync("undamaged")["embedded"] == gone
    assert sum(map(len, server.requests)) - asked == gone
    assert len(vectors_of(tenant)) == texts


def test_a_tenant_that_is_written_is_healthy(
    clock: Clock, tenants: Mapping[str, CheckedTenant], shared_installation: Installation
) -> None:
    tenant = tenants["undamaged"]
    stop = threading.Event()
    written = []

    def write() -> None:
        writer = Driver(shared_installation)
        while not stop.is_set():
            text = f"# Page\n\nWords of edition {len(written)}.\n\n## More\n\nOf them.\n"
            (tenant.folder / f"page-{len(written) % 3}.md").write_text(text)
            writer.sync("undamaged")
            written.append(text)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(3):
            begun = len(written)
            check(clock, "undamaged", checks=BY_NIGHT)
            assert named(clock, "undamaged", BY_NIGHT) == {}
            while len(written) == begun and thread.is_alive():
                stop.wait(0.05)
    finally:
        stop.set()
        thread.join()
    assert len(written) >= 3


TABLES: tuple[Table, ...] = (documents, document_index, syncs, catalog_marks)


def test_a_catalog_that_was_set_back_deletes_nothing_until_it_is_accepted(
    clock: Clock,
    tenants: Mapping[str, CheckedTenant],
    driver: Driver,
    shared_installation: Installation,
    server: EmbeddingServer,
) -> None:
    name = "entry-added"
    tenant = tenants[name]
    kept = dump(tenant)
    (tenant.folder / "oncall.md").write_text("# On call\n\nThe one on call answers at once.\n")
    (tenant.folder / "new.md").write_text("# New\n\nWritten after the dump.\n")
    driver.sync(name)
    restore(tenant, kept)
    check(clock, name)
    results = clock.results(name)
    assert named(clock, name, {CATALOG}) == {CATALOG: {"catalog was set back"}}
    others = {one for one, result in results.items() if not result.passed} - {CATALOG}
    assert others == {*BY_NIGHT, ISOLATION} - {CATALOG}
    for other in others:
        assert "not compared" in (results[other].description or ""), other

    # Repair and sync delete neither entries nor documents.
    entries = shared_installation.entries(name)
    (tenant.folder / "leave.md").unlink()
    asked = sum(map(len, server.requests))
    with driver.locked(name) as ctx:
        repair_tenant(ctx)
    done = driver.sync(name)
    assert (done["removed"], done["held"], done["deleted"]) == (0, 1, 0)
    assert set(entries) <= set(shared_installation.entries(name))
    assert sum(map(len, server.requests)) == asked, "the lake has what the catalog forgot"
    check(clock, name, checks={CATALOG})
    assert named(clock, name, {CATALOG})[CATALOG], "commits do not hide it"

    answer = shared_installation.command("sync", name, "--accept-catalog", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["stages"]["raw_documents"]["removed"] == 1
    with driver.locked(name) as ctx:
        assert not accept_catalog(ctx), "it is accepted"
    check(clock, name, checks={*BY_NIGHT, ISOLATION})
    assert named(clock, name, {*BY_NIGHT, ISOLATION}) == {}
    assert sum(map(len, server.requests)) == asked
    found = {uri for uri, _, _ in shared_installation.entries(name).values()}
    assert found == {"files/rollback.md", "files/oncall.md", "files/new.md"}


def dump(tenant: CheckedTenant) -> dict[str, list[dict[str, Any]]]:
    with tenant.ctx.catalog.database.begin() as connection:
        return {
            table.name: [
                dict(row)
                for row in connection.execute(
                    select(table).where(table.c.tenant == tenant.name)
                ).mappings()
            ]
            for table in TABLES
        }


def restore(tenant: CheckedTenant, kept: Mapping[str, list[dict[str, Any]]]) -> None:
    with tenant.ctx.catalog.database.begin() as connection:
        for table in reversed(TABLES):
            connection.execute(delete(table).where(table.c.tenant == tenant.name))
        for table in TABLES:
            connection.execute(insert(table), kept[table.name])


def test_repairs_are_requested_but_for_who_does_not_want_them(
    clock: Clock, tenants: Mapping[str, CheckedTenant], shared_installation: Installation
) -> None:
    for name, auto in (("entries-deleted", True), ("vector-altered", False)):
        shared_installation.configure(name, auto_repair=None if auto else False)
        DAMAGES[name].do(tenants[name])
    shared_installation.session().catalog  # noqa: B018 - reads tenants.yaml again
    clock.session.instance.add_dynamic_partitions(PLAIN.partitions_name, [*tenants])
    nightly(clock)
    # The requested runs are not executed: that was tested above.
    with dg.build_sensor_context(
        instance=clock.session.instance, resources=sensor_resources()
    ) as context:
        result = drift_offenders_sensor.build(PLAIN)(context)
    assert isinstance(result, dg.SensorResult)
    requests = result.run_requests or []
    assert [request.partition_key for request in requests] == ["entries-deleted"]
    assert clock.results("vector-altered")[DRIFT].passed is False
