"""A purge removes documents from every store and file, proves it, and leaves the rest alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from elasticsearch import Elasticsearch
from sqlalchemy import text

from rag_assets.common.errors import OnHold, UnknownDocument
from rag_assets.pipeline.erasure import purge_documents, settle_open_erasures
from rag_assets.pipeline.versions import find_needed_keys
from rag_assets.storage.catalog.erasure.receipts import Receipt
from rag_assets.storage.lake.model import DeadKeys
from tests.integration.aging import AgingTenant, Make
from tests.integration.test_generations import CHUNKED

SENTENCE = "The lighthouse keeper counted seventeen grey seals at dawn"
LONG = "with a tail of many words that goes on and on " * 4
SHARED = "Every boat has to be moored with two lines before nightfall comes."


def document_id(tenant: AgingTenant, uri: str) -> str:
    documents = tenant.driver.session.catalog.documents.all(tenant.id, deleted=True)
    return next(d.document_id for d in documents if d.uri == uri)


def purged(tenant: AgingTenant, *uris: str) -> Receipt:
    ids = [document_id(tenant, uri) for uri in uris]
    with tenant.within() as ctx:
        return purge_documents(ctx, ids, by="a test")


def filled(tenant: AgingTenant) -> None:
    tenant.write("keeper", f"{SENTENCE}.\n\n## Moorings\n\n{SHARED}")
    tenant.write("keeper2", f"Another page about boats.\n\n## Moorings\n\n{SHARED}")
    tenant.push("log", f"A record: {SENTENCE}, as was said.", title="Seals at dawn")
    tenant.sync()


def answers(tenant: AgingTenant, query: str) -> set[str]:
    hits = tenant.installation.search(tenant.id, query, mode="text", top_k=20)
    return {hit.uri for hit in hits}


def database_text(tenant: AgingTenant) -> str:
    """Return every row of every table, except tables that keep hashes intentionally."""
    with psycopg.connect(tenant.installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
            " AND tablename NOT IN ('receipts', 'tombstones')"
        ).fetchall()
        rows = []
        for schema, table in tables:
            query = psycopg.sql.SQL("SELECT to_jsonb(t)::text FROM {} t").format(
                psycopg.sql.Identifier(schema, table)
            )
            rows += [row[0] for row in connection.execute(query).fetchall()]
    return "\n".join(rows)


def test_nothing_of_it_is_left_and_its_neighbours_are_as_before(make: Make) -> None:
    tenant = make()
    filled(tenant)
    tenant.installation.configure(tenant.id, **CHUNKED)
    tenant.installation.synced(tenant.id)  # a second build, and runs in Dagster that name it
    assert answers(tenant, SENTENCE) >= {"files/keeper.md", "pushed/page/log"}
    gone = [document_id(tenant, uri) for uri in ("files/keeper.md", "pushed/page/log")]
    receipt = purged(tenant, "files/keeper.md", "pushed/page/log")
    assert receipt.proof["found"] == {"index": 0, "lake": 0, "postgres": []}
    assert receipt.proof["deleted entries in segments"] == 0
    assert receipt.proof["dead rows in tables"] == 0
    assert receipt.proof["complete"]
    assert any("write-ahead" in what for what in receipt.proof["out of reach"])
    assert (receipt.kind, receipt.counts["documents"]["documents"]) == ("purge", 2)
    assert receipt.counts["records"]["records"] == 1
    # By other means than the proof's.
    rows = database_text(tenant)
    for trace in (SENTENCE, "Seals at dawn", "files/keeper.md", "pushed/page/log", *gone):
        assert trace not in rows, trace
    assert not re.search(rf"{tenant.id}:keeper\.md", rows)
    assert "files/keeper2.md" in rows
    texts = tenant.lake_texts()
    assert "lighthouse" not in texts
    assert SHARED in texts
    assert tenant.uris() == {"files/keeper2.md"}
    assert answers(tenant, SHARED) == {"files/keeper2.md"}
    done = tenant.sync()
    assert (done["added"], done["embedded"], done["parsed"]) == (0, 0, 0)
    tenant.write("keeper", "The keeper writes something else.")
    assert tenant.sync()["added"] == 1


@pytest.mark.parametrize("is_former", [False, True])
def test_entries_of_a_build_that_the_catalog_has_lost_go_as_well(
    make: Make, *, is_former: bool
) -> None:
    tenant = make()
    filled(tenant)
    catalog = tenant.driver.session.catalog
    serving = catalog.generations.serving(tenant.id)
    assert serving is not None
    conditions = [{"term": {"tenant": tenant.id}}, {"match_phrase": {"text": SENTENCE}}]
    holding = {"bool": {"filter": conditions}}
    with Elasticsearch(tenant.installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]) as client:

        def entries() -> list[dict[str, Any]]:
            client.indices.refresh(index=serving.index_name)
            found = client.search(index=serving.index_name, query=holding)
            return list(found["hits"]["hits"])

        assert entries()
        for hit in entries():
            source = {**hit["_source"], "generation": hit["_source"]["generation"] + 7}
            if is_former:  # of a document that has gone, with a sentence that went on in this one
                source |= {"document_id": "0" * 32, "text_sha256": "0" * 64}
            client.index(index=serving.index_name, routing=tenant.id, document=source)
        receipt = purged(tenant, "files/keeper.md", "pushed/page/log")
        assert receipt.proof["complete"]
        assert entries() == []


def test_no_short_heading_of_it_is_left_in_records_of_runs(make: Make) -> None:
    tenant = make()
    tenant.write("keeper", f"## Of seals\n\n{SENTENCE}.")
    tenant.installation.synced(tenant.id)
    assert "Of seals" not in _recorded_chunks(tenant)
    with psycopg.connect(tenant.installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        # As earlier versions recorded it.
        connection.execute(
            "UPDATE rag_dagster.event_logs SET event = replace(event, %s, %s) WHERE partition = %s",
            [
                '"data": {"document": "files/keeper.md"',
                '"data": {"document": "files/keeper.md", "heading": "Of \\"seals\\""',
                tenant.id,
            ],
        )
    assert "seals" in _recorded_chunks(tenant)
    assert purged(tenant, "files/keeper.md").proof["complete"]
    recorded = _recorded_chunks(tenant)
    assert "seals" not in recorded
    assert json.loads(recorded)["__class__"] == "EventLogEntry"


def _recorded_chunks(tenant: AgingTenant) -> str:
    """Return the event in which Dagster recorded the run of `chunks`."""
    with psycopg.connect(tenant.installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        row = connection.execute(
            "SELECT event FROM rag_dagster.event_logs"
            " WHERE partition = %s AND asset_key = '[\"chunks\"]'"
            " AND dagster_event_type = 'ASSET_MATERIALIZATION'",
            [tenant.id],
        ).fetchone()
    assert row is not None
    return str(row[0])


def test_no_file_of_the_installation_holds_a_sentence_of_it(make: Make) -> None:
    tenant = make()
    filled(tenant)
    local = tenant.installation.home / ".local"
    purged(tenant, "files/keeper.md", "pushed/page/log")
    assert holding(local, SENTENCE) == []


def holding(folder: Path, sentence: str) -> list[Path]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in files if sentence.encode() in path.read_bytes()]


def test_a_file_of_the_lake_that_nothing_lists_is_found(make: Make) -> None:
    tenant = make()
    filled(tenant)
    with tenant.within() as ctx:
        lake = Path(ctx.lake._location.url)
        before = {path: path.read_bytes() for path in lake.rglob("*.parquet")}
        receipt = purge_documents(ctx, [document_id(tenant, "files/keeper.md")], by="a test")
        assert receipt.proof["complete"]
    restored = [path for path in before if not path.exists() and "chunks" in path.parts]
    assert restored, "its files were rewritten"
    restored[0].write_bytes(before[restored[0]])
    with tenant.within() as ctx:
        needed = find_needed_keys(ctx).known
        [name] = ctx.lake.find_files_with_erased_data(DeadKeys(), [SENTENCE], needed)
        assert name.startswith("chunks/")


def test_what_is_held_or_unknown_is_refused(make: Make) -> None:
    tenant = make()
    filled(tenant)
    cli = tenant.installation.command
    id_ = document_id(tenant, "files/keeper.md")
    said = cli("purge", tenant.id, "--document", id_)
    assert said.code == 1
    assert f"--document {id_} --yes" in said.err
    assert cli("hold", "set", tenant.id, "--source", "files", "--reason", "a claim").code == 0
    said = cli("purge", tenant.id, "--document", id_, "--yes")
    assert said.code == 1
    assert "source 'files'" in said.err
    with tenant.within() as ctx:
        with pytest.raises(OnHold):
            purge_documents(ctx, [id_], by="a test")
        with pytest.raises(UnknownDocument):
            purge_documents(ctx, ["0" * 32], by="a test")
    assert tenant.uris() == {"files/keeper.md", "files/keeper2.md", "pushed/page/log"}
    assert cli("hold", "lift", tenant.id, "--source", "files", "--reason", "settled").code == 0
    said = cli("purge", tenant.id, "--document", id_, "--yes", "--json")
    assert said.code == 0
    assert said.json["complete"]
    assert tenant.uris() == {"files/keeper2.md", "pushed/page/log"}


class Killed(Exception):
    """Simulates the end of the process."""


def test_killed_on_the_way_the_next_run_ends_it(make: Make) -> None:
    tenant = make()
    filled(tenant)
    expected = None
    for step in range(2, 40, 2):
        sentence = f'The doomed page number {step} says "this sentence" only once, for nobody else'
        tenant.write("doomed", f"{sentence}, and {LONG}.")
        tenant.sync()
        id_ = document_id(tenant, "files/doomed.md")
        left = step

        def guard() -> None:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1

        is_killed = False
        with tenant.within() as ctx:
            asked = {"query": f"who said: {sentence}, and {LONG}?"}
            ctx.catalog.events.write(ctx.ref, "rag_search_started", [asked])
            lake = tenant.driver.session.lake.tenant(tenant.id, ctx.ref.incarnation, guard=guard)
            try:
                purge_documents(replace(ctx, guard=guard, lake=lake), [id_], by="a test")
            except Killed:
                is_killed = True
        with tenant.within() as ctx:
            settle_open_erasures(ctx)
        receipt = tenant.driver.session.catalog.receipts.all(tenant.id)[-1]
        expected = expected or receipt.counts
        assert receipt.counts == expected, step
        assert receipt.proof["complete"], receipt.proof
        assert receipt.proof["searched for"] == ["document ids", "hashes", "names", "phrases"]
        assert "doomed page" not in tenant.lake_texts()
        rows = database_text(tenant)
        assert id_ not in rows
        assert "this sentence" not in rows
        assert "doomed page" not in rows
        assert list(Path(tenant.driver.session.settings.lake_url).glob("erasure_*")) == []
        if not is_killed:
            assert step > 8, "there are more places to be killed at"
            return
    raise AssertionError("it never ran to its end")


def test_what_is_left_keeps_the_erasure_open_and_the_next_run_finds_it(make: Make) -> None:
    tenant = make()
    tenant.write("keeper", f"{SENTENCE}.")
    tenant.sync()
    id_ = document_id(tenant, "files/keeper.md")
    with tenant.within() as ctx, ctx.catalog.database.begin() as connection:
        # A table that no purge redacts, as one of a later version may be.
        connection.execute(text("CREATE TABLE rag_catalog.extra (tenant text, said text)"))
        quoted = {"tenant": tenant.id, "said": f"{SENTENCE}."}
        connection.execute(text("INSERT INTO rag_catalog.extra VALUES (:tenant, :said)"), quoted)
    try:
        for _ in range(2):
            said = tenant.installation.command("purge", tenant.id, "--document", id_, "--yes")
            assert said.code == 1
            assert "rag_catalog.extra.said" in said.err
            assert f"rag-assets sync {tenant.id}" in said.err
            tenant.sync()
        catalog = tenant.driver.session.catalog
        assert [one for one in catalog.receipts.all(tenant.id) if one.kind == "purge"] == []
        with catalog.database.begin() as connection:
            connection.execute(text("DELETE FROM rag_catalog.extra"))
        with tenant.within() as ctx:
            receipts = settle_open_erasures(ctx)
        assert all(receipt.proof["complete"] for receipt in receipts)
        assert "phrases" in receipts[0].proof["searched for"]
    finally:
        with tenant.driver.session.catalog.database.begin() as connection:
            connection.execute(text("DROP TABLE rag_catalog.extra"))


def test_a_document_that_came_back_during_its_purge_does_not_keep_it_open(make: Make) -> None:
    tenant = make()
    tenant.push("log", f"A record: {SENTENCE}, as was said.", title="Seals at dawn")
    tenant.sync()
    id_ = document_id(tenant, "pushed/page/log")
    with tenant.within() as ctx:
        ctx.catalog.erasures.begin_purge(ctx.ref, [id_], by="a test", at=ctx.clock.now())
    tenant.push("log", f"A record: {SENTENCE}, as was said again.", title="Seals at dusk")
    tenant.sync()
    [receipt] = tenant.driver.session.catalog.receipts.all(tenant.id) or [None]
    if receipt is None:
        with tenant.within() as ctx:
            [receipt] = settle_open_erasures(ctx)
    assert receipt.proof["complete"], receipt.proof
    assert tenant.uris() == {"pushed/page/log"}
