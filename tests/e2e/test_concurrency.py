"""Two writers of one tenant, dead and late writers, and embedders and servers that fail midway."""

from __future__ import annotations

import json
from collections.abc import Iterator

import dagster as dg
import psycopg
import pytest

from rag_assets.pipeline.drift import inspect_index
from rag_assets.resources.own_runs import PARTITION_TAG
from rag_assets.resources.tenant_lock import fail_abandoned_runs
from rag_assets.storage.catalog.lock import compute_lock_key
from tests.e2e.killing import KILLED, ForkServer, fork_server
from tests.installation import FAST, Installation

LATE = (
    "lake parsed_text",
    "lake chunks",
    "elasticsearch PUT index",
    "elasticsearch POST _aliases",
    "elasticsearch PUT _bulk",
    "elasticsearch POST _refresh",
)


@pytest.fixture(scope="module")
def server(shared_installation: Installation) -> Iterator[ForkServer]:
    """Start a fork server whose commands are stopped or killed."""
    with fork_server(shared_installation.environment) as made:
        yield made


@pytest.fixture(scope="module")
def operator(shared_installation: Installation) -> Iterator[ForkServer]:
    """Start a fork server whose commands run while another one is stopped."""
    with fork_server(shared_installation.environment) as made:
        yield made


@pytest.fixture(scope="module")
def instance(shared_installation: Installation) -> dg.DagsterInstance:
    """Return the Dagster instance."""
    return shared_installation.session().instance


def fill(installation: Installation, tenant: str, documents: int = 3, **config: object) -> None:
    """Add a tenant with a few documents."""
    folder = installation.add_tenant(tenant, **{**FAST, **config})
    for number in range(documents):
        (folder / f"d{number}.md").write_text(f"# Page {number}\n\nAbout {tenant}, {number}.\n")


def assert_sound(installation: Installation, tenant: str, documents: int = 3) -> None:
    """Fail unless index and catalog hold every document exactly once."""
    uris = [uri for uri, _, _ in installation.entries(tenant).values()]
    assert sorted(uris) == sorted(f"files/d{number}.md" for number in range(documents))
    ctx = installation.context(tenant)
    assert all(state.is_healthy for state in inspect_index(ctx))
    assert ctx.catalog.documents.count_by_status(tenant) == {"READY": documents}


def runs_of(instance: dg.DagsterInstance, tenant: str) -> list[dg.DagsterRun]:
    """Return a tenant's runs, the newest first."""
    return list(instance.get_runs(filters=dg.RunsFilter(tags={PARTITION_TAG: tenant})))


@pytest.mark.ci
def test_of_two_syncs_one_waits_and_nothing_is_doubled(
    shared_installation: Installation, server: ForkServer
) -> None:
    fill(shared_installation, "both", documents=6)
    with server.stopped("sync", "both", "--json", before="elasticsearch PUT _bulk") as go_on:
        second = shared_installation.start("sync", "both", "--json")
        assert second.stderr is not None
        line = ""
        for line in second.stderr:
            if "waiting for" in line:
                break
        assert "held by run of sync_tenant (process " in line
        first = go_on()
        out, _ = second.communicate(timeout=120)
    assert (first.code, second.returncode) == (0, 0), (first.err, out)
    done = [first.json["stages"], json.loads(out)["stages"]]
    assert [stages["embeddings"]["embedded"] for stages in done] == [6, 0]
    assert [stages["search_index"]["upserted"] for stages in done] == [6, 0]
    assert_sound(shared_installation, "both", documents=6)


def test_the_run_of_a_killed_sync_is_failed_by_the_next_one(
    shared_installation: Installation, server: ForkServer, instance: dg.DagsterInstance
) -> None:
    fill(shared_installation, "dead")
    killed = server.run("sync", "dead", kill_before=9)
    assert killed.code == KILLED
    assert [run.status for run in runs_of(instance, "dead")] == [dg.DagsterRunStatus.STARTED]
    again = server.run("sync", "dead", "--json")
    assert again.code == 0, again.err
    *later, first = [run.status for run in runs_of(instance, "dead")]
    assert first == dg.DagsterRunStatus.FAILURE
    assert set(later) == {dg.DagsterRunStatus.SUCCESS}
    assert_sound(shared_installation, "dead")


def test_runs_of_dead_processes_are_failed_and_those_of_living_ones_are_not(
    shared_installation: Installation, server: ForkServer, instance: dg.DagsterInstance
) -> None:
    session = shared_installation.session()
    catalog, settings = session.catalog, session.settings
    fill(shared_installation, "dying")
    fill(shared_installation, "living")
    assert server.run("sync", "dying", kill_before=9).code == KILLED
    dying = runs_of(instance, "dying")[0].run_id
    with server.stopped("sync", "living", before="elasticsearch PUT _bulk") as go_on:
        assert fail_abandoned_runs(instance, catalog, settings) == [dying]
        assert fail_abandoned_runs(instance, catalog, settings) == []
        assert go_on().code == 0
    assert [run.status for run in runs_of(instance, "living")] == [dg.DagsterRunStatus.SUCCESS]
    assert runs_of(instance, "dying")[0].status == dg.DagsterRunStatus.FAILURE


@pytest.mark.parametrize("moment", LATE)
def test_a_late_writer_leaves_nothing_of_a_removed_tenant(
    shared_installation: Installation, server: ForkServer, operator: ForkServer, moment: str
) -> None:
    installation = shared_installation
    tenant = f"late-{LATE.index(moment)}"
    used_again = LATE.index(moment) % 2 == 0
    fill(installation, tenant, index={"placement": "dedicated"})
    catalog, store = installation.session().catalog, installation.session().store
    with server.stopped("sync", tenant, "--json", before=moment) as go_on:
        old = catalog.tenants.get(tenant).incarnation
        break_lock(installation, tenant)
        removed = operator.run("tenants", "remove", tenant, "--yes")
        assert removed.code == 0, removed.err
        if used_again:
            fill(installation, tenant, index={"placement": "dedicated"})
            assert operator.run("sync", tenant).code == 0
        late = go_on()
    assert late.code == 1, (late.out, late.err)
    assert "Traceback" not in late.err
    assert_nothing_left(installation, tenant, old)
    if used_again:
        assert_sound(installation, tenant)
        assert catalog.tenants.get(tenant).incarnation > old
    else:
        assert catalog.tenants.find(tenant) is None
        assert store.indexes.view(tenant) is None
        assert store.indexes.dedicated(tenant) == []


def break_lock(installation: Installation, tenant: str) -> None:
    """Terminate the connection that holds a tenant's lock."""
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        " AND ((classid::bigint << 32) | objid::bigint) = %s"
    )
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        assert connection.execute(cut, [compute_lock_key(tenant)]).fetchall() == [(True,)]


def assert_nothing_left(installation: Installation, tenant: str, incarnation: int) -> None:
    """Fail if an index or a folder of the lake holds data of a former tenant with this id."""
    session = installation.session()
    for index_name in session.store.indexes.names():
        assert (tenant, incarnation) not in session.store.indexes.owners(index_name)
    assert (tenant, incarnation) not in list(session.lake.incarnations())
