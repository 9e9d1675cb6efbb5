"""The promises of a workspace, with Dagster's daemon, its change watcher and the service.

Each acceptance criterion has a test here. The tests of a page that is saved all the time, and of
many records with edits and kills, are short forms of `python -m benchmarks.pushing`. Vectors do not
matter, so the deterministic embedder is used.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import dagster as dg
import pytest

from benchmarks.pushing import bulk, changing_page
from benchmarks.pushing.recount import count_queue
from benchmarks.pushing.site import SOURCE, Service, Workspace, build_page
from rag_assets.client import Client, Question
from rag_assets.client.errors import NotFound
from rag_assets.storage.blobs.store import open_blobs
from tests.e2e.running import PATIENCE, Daemon, running_daemon, wait_for
from tests.installation import FAST, Installation

PROMISED_SECONDS = 60
TENANT = "knowledge"
SOURCES = [{"name": SOURCE, "type": "records"}]
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def daemon(shared_installation: Installation) -> Iterator[Daemon]:
    for tenant in (TENANT, "changing", "changing-file", "killed-file", "imported"):
        shared_installation.add_tenant(tenant, **FAST, profile="workspace", sources=SOURCES)
    with running_daemon(shared_installation, watched=True) as running:
        yield running


@dataclass
class Doors:
    """The service, and its clients, which are closed at the end."""

    service: Service
    daemon: Daemon
    _opened: ExitStack

    def client(self, tenant: str, name: str, role: str) -> Client:
        """Return a client of a new person."""
        token = self.token(tenant, name, role)
        return self._opened.enter_context(Client(self.service.url, token))

    def token(self, tenant: str, name: str, role: str) -> str:
        """Return a new token of a person."""
        created = ("tokens", "create", tenant, "--role", role, "--principal", name, "--json")
        return str(self.daemon.installation.command(*created).json["token"])

    def workspace(self, tenant: str) -> Workspace:
        """Return a workspace, used by an admin."""
        token = self.token(tenant, "chief", "admin")
        admin = self._opened.enter_context(Client(self.service.url, token))
        session, of = self.daemon.installation.session(), self.daemon
        blobs = open_blobs(session.settings)
        return Workspace(
            *(tenant, admin, self.service, of.catalog, of.instance, session.store),
            token=token,
            blobs=blobs,
        )


@pytest.fixture(scope="module")
def doors(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    service = Service(tmp_path_factory.mktemp("service") / "log")
    service.start()
    with ExitStack() as opened:
        yield Doors(service, daemon, opened)
    service.kill()


@pytest.fixture(scope="module")
def workspace(doors: Doors) -> Workspace:
    return doors.workspace(TENANT)


def texts(client: Client, words: str) -> list[str]:
    answer = client.query(Question(query=words, mode="text", top_k=20))
    return [hit.text for hit in answer.hits]


def found(workspace: Workspace, word: str) -> float:
    """Return the seconds until a search finds a word."""
    return wait_for(lambda: workspace.is_found(word), PATIENCE, f"{word} is found")


@pytest.mark.ci
def test_an_edited_page_is_found_within_a_minute_by_its_readers_alone(
    workspace: Workspace, doors: Doors
) -> None:
    ada, eve = (doors.client(TENANT, name, "member") for name in ("ada", "eve"))
    guest = doors.client(TENANT, "gus", "guest")
    everybody = {"chief": workspace.client, "ada": ada, "eve": eve, "gus": guest}

    def readers(word: str) -> set[str]:
        return {name for name, client in everybody.items() if texts(client, word)}

    workspace.put_page("open")
    workspace.client.put_page("private", inherit=False, read=["ada"])
    workspace.put("page", "open", build_page("Open", "The kestrel nests in the tower."))
    workspace.put("page", "private", build_page("Private", "The osprey nests in the harbour."))
    workspace.put("comment", "note", {"page_uuid": "private", "text": "Is it an osprey at all?"})
    found(workspace, "kestrel")
    wait_for(lambda: len(texts(ada, "osprey")) == 2, PATIENCE, "page and comment are found")
    assert readers("kestrel") == {"chief", "ada", "eve"}
    assert readers("osprey") == {"ada"}, "not even an admin, nor a guest"

    pushed, seconds = time.time(), []
    for edition in ("falcon", "merlin", "hobby"):
        workspace.put("page", "open", build_page("Open", f"The {edition} nests in the tower."))
        seconds.append(found(workspace, edition))
    assert max(seconds) <= PROMISED_SECONDS, seconds
    assert texts(ada, "kestrel") == []

    # Grants, moves and revocations take effect with their responses.
    workspace.client.put_page("private", inherit=False, read=["ada", "gus"])
    assert readers("osprey") == {"ada", "gus"}
    workspace.client.put_page("open", parent="private")
    assert readers("hobby") == {"ada", "gus"}
    workspace.client.put_page("private", inherit=False, read=["eve"])
    assert readers("hobby") == readers("osprey") == {"eve"}

    wait_for(lambda: not workspace.read_status().queue_depth, PATIENCE, "nothing waits")
    depth = count_queue(workspace)
    assert (depth.reported, depth.recounted) == (0, 0)
    status = workspace.read_status()
    assert status.last_indexed_at is not None
    assert status.last_indexed_at.timestamp() > pushed
    told = eve.status()
    assert (told.chunks, told.stale, told.queue_depth) == (
        len([*workspace.read_entry_texts()]),
        0,
        0,
    )
    assert guest.status().chunks == 0


def test_switched_off_it_indexes_nothing_and_on_everything_again(
    workspace: Workspace, daemon: Daemon
) -> None:
    wait_for(lambda: not workspace.read_status().queue_depth, PATIENCE, "nothing waits")
    before = indexed_at(workspace)
    assert before, "there is something to index again"
    assert not workspace.client.change_workspace_settings({"enabled": False}).enabled
    workspace.put_page("quiet")
    workspace.put("page", "quiet", build_page("Quiet", "The bittern booms at night."))
    answer = workspace.client.query(Question(query="bittern hobby", mode="text"))
    assert (answer.disabled, answer.hits) == (True, ())
    # The watcher notices a push immediately, the daemon every five seconds.
    time.sleep(8)
    daemon.idle(TENANT)
    assert indexed_at(workspace) == before
    depth = count_queue(workspace)
    assert depth.reported == depth.recounted == workspace.read_status().queue_depth == 1

    switched = datetime.now().astimezone()
    assert workspace.client.change_workspace_settings({"enabled": True}).enabled
    depth = count_queue(workspace)
    assert depth.reported == depth.recounted > 0
    assert found(workspace, "bittern") <= PROMISED_SECONDS
    wait_for(lambda: not workspace.read_status().queue_depth, PATIENCE, "nothing waits")
    after = indexed_at(workspace)
    assert after.keys() > before.keys()
    assert min(after.values()) > switched, "everything was indexed again"


def test_a_database_or_a_page_is_made_anew_on_request_and_nothing_else(
    workspace: Workspace,
) -> None:
    workspace.client.put_page("birds", kind="database")
    workspace.client.put_page("nests", kind="database")
    for database in ("birds", "nests"):
        for number in range(3):
            values = [{"name": "Name", "value_text": f"Plover {number} of the {database}"}]
            workspace.put(
                "db_row", f"{database}-{number}", {"database_uuid": database, "values": values}
            )
    workspace.put_page("field")
    workspace.put("page", "field", build_page("Field", "The lapwing tumbles."))
    workspace.put("comment", "seen", {"page_uuid": "field", "text": "A lapwing, indeed."})
    wait_for(lambda: not workspace.read_status().queue_depth, PATIENCE, "nothing waits")

    def ids(source_type: str, *names: str) -> set[str]:
        return {workspace.compute_document_id(source_type, name) for name in names}

    rows = ids("db_row", *(f"birds-{number}" for number in range(3)))
    for scope, wanted in (
        ({"database": "birds"}, rows),
        ({"page": "field"}, ids("page", "field") | ids("comment", "seen")),
    ):
        before, began = indexed_at(workspace), time.time()
        assert workspace.client.reindex(**scope).documents == len(wanted)
        assert_counted(workspace)
        wait_for(lambda: not workspace.read_status().queue_depth, PATIENCE, "nothing waits")
        after = indexed_at(workspace)
        assert {one for one in after if after[one] != before[one]} == wanted
        assert embedded_texts(workspace, began) == 0
    with pytest.raises(NotFound):
        workspace.client.reindex(database="unknown")


def assert_counted(workspace: Workspace) -> None:
    """Fail unless the reported number of waiting documents equals the number of rows."""
    depth = count_queue(workspace)
    assert depth.reported == depth.recounted


def indexed_at(workspace: Workspace) -> dict[str, datetime]:
    """Return the time at which each document was last indexed."""
    rows = workspace.query_rows(
        "SELECT document_id, indexed_at FROM rag_catalog.document_index WHERE tenant = :tenant"
    )
    return {row.document_id: row.indexed_at for row in rows}


@pytest.mark.ci
def test_a_credential_is_dropped_before_it_is_embedded_and_told_of(workspace: Workspace) -> None:
    secret = "ghp_" + "Q7wERtYuIoPaSdFgHjKl"
    blocks = [
        {"block_id": "a", "type": "paragraph", "text": "The warbler sings. " * 900},
        {"block_id": "b", "type": "paragraph", "text": f"The token is {secret}."},
    ]
    workspace.put_page("leaking")
    workspace.put("page", "leaking", {"title": "Warblers", "blocks": blocks})
    found(workspace, "warbler")
    told = [event.payload for event in workspace.client.events(kind="secret_dropped").events]
    mine = [one for one in told if one.get("id") == "leaking"]
    assert {(one["type"], one["rule"]) for one in mine} == {("page", "described-ghp")}
    assert all("chunk" in one for one in mine)
    assert not any(secret in text for text in workspace.read_entry_texts())
    whereabouts = workspace.client.record("page", "leaking")
    assert whereabouts.dropped_chunks > 0
    assert not any(secret in chunk.text for chunk in whereabouts.chunks)


@pytest.mark.ci
def test_the_nightly_run_has_records_listed_whose_time_alone_changed(
    workspace: Workspace, daemon: Daemon
) -> None:
    body = build_page("Dated", "The nightjar churrs.") | {"updated_at": "2026-01-01T00:00:00Z"}
    workspace.put_page("dated")
    workspace.put("page", "dated", body)
    found(workspace, "nightjar")
    again = workspace.put("page", "dated", body | {"updated_at": "2026-03-01T00:00:00Z"})
    assert again == "unchanged", "a time makes no difference at once"
    daemon.idle(TENANT)
    began = time.time()
    night = daemon.ended(daemon.launch("detect_drift"))
    assert night.dagster_run.status is dg.DagsterRunStatus.SUCCESS

    def month() -> int:
        [hit] = workspace.client.query(Question(query="nightjar", mode="text")).hits
        assert hit.modified_at is not None
        return hit.modified_at.month

    wait_for(lambda: month() == 3, PATIENCE, "the entry has the record's time")
    daemon.idle(TENANT)
    assert embedded_texts(workspace, began) == 0


def embedded_texts(workspace: Workspace, since: float) -> int:
    """Return the number of texts that runs have embedded since a time."""
    total = 0
    for run in workspace.list_runs(since):
        for entry in workspace.instance.all_logs(
            run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
        ):
            made: Any = entry.asset_materialization
            if made.asset_key == dg.AssetKey("embeddings"):
                total += int(made.metadata["embedded"].value)
    return total


def test_a_page_that_is_saved_every_second_is_indexed_as_it_was_listed(
    doors: Doors,
) -> None:
    trial = changing_page.run_trial(doors.workspace("changing"), 9)
    assert changing_page.find_faults(trial) == []
    assert len(trial.listed_at) >= 2


def test_a_file_that_is_put_every_second_is_indexed_as_it_was_listed(doors: Doors) -> None:
    trial = changing_page.run_trial(doors.workspace("changing-file"), 9, kind="file")
    assert changing_page.find_faults(trial) == []
    assert len(trial.listed_at) >= 2


def test_a_file_that_is_put_while_processes_are_killed_is_whole_at_every_moment(
    doors: Doors,
) -> None:
    trial = changing_page.run_trial(
        doors.workspace("killed-file"), 9, kind="file", kills={2: "service", 5: "run", 7: "service"}
    )
    assert changing_page.find_faults(trial) == []
    assert trial.killed == ["service", "run", "service"]


def test_many_records_are_neither_lost_nor_doubled_by_kills_and_yield_to_edits(
    doors: Doors, daemon: Daemon
) -> None:
    kills = {1: "run", 3: "service"}
    plan = bulk.BulkPlan(records=3_000, edits=4, edit_seconds=1.5, sample_seconds=0.5, kills=kills)
    trial = bulk.run_trial(doors.workspace("imported"), plan, say=lambda line: None)
    assert bulk.find_faults(trial) == []
    assert trial.killed == ["run", "service"]
    checked = daemon.installation.command("check", "imported", "--json")
    assert checked.code == 0, checked.out
