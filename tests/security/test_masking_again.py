"""Text from before a rule existed is masked too; text that cannot be masked is withheld."""

from __future__ import annotations

import psycopg

from rag_assets.ingest.sources.model import SourceMetadata, build_uri, compute_document_id
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.storage.catalog.records.model import PushedRecord
from tests.installation import FAST, Installation
from tests.records import put_record
from tests.unit.privacy.secrets import planted


def rows(installation: Installation) -> dict[str, str]:
    """Return every row of ours as text, by document, except records as they were pushed."""
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        query = "SELECT document_id, d::text FROM rag_catalog.documents d"
        return dict(connection.execute(query).fetchall())


def test_names_that_former_rules_missed_are_masked_by_the_next_sync(
    installation: Installation,
) -> None:
    folder = installation.add_tenant("acme", **FAST)
    name = f"notes-{planted.GITHUB}.md"
    (folder / name).write_text("The valve opens at 4 bar.\n")
    (folder / "plain.md").write_text("The pump starts at night.\n")
    installation.synced("acme")
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        connection.execute(
            "UPDATE rag_catalog.documents SET path = %s, uri = %s, tags = %s"
            " WHERE document_id = %s",
            [
                name.encode(),
                build_uri("files", name),
                [planted.SLACK],
                compute_document_id("files", name),
            ],
        )
        connection.execute("UPDATE rag_catalog.tenants SET scanned = '{}'")
        # The rules are part of the digest: with other rules, the source is listed again.
        connection.execute("UPDATE rag_catalog.syncs SET listing_digest = 'of former rules'")
    counts = installation.synced("acme")
    assert counts["raw_documents"]["added"] == 0
    stored = "".join(rows(installation).values())
    assert planted.GITHUB not in stored
    assert planted.SLACK not in stored
    assert planted.GITHUB.encode().hex() not in stored
    [hit] = installation.search("acme", "valve", mode="text")
    assert hit.text == "The valve opens at 4 bar."
    assert planted.GITHUB not in repr(hit)
    # The second time there is nothing to do.
    before = rows(installation)
    assert installation.synced("acme")["search_index"]["upserted"] == 0
    assert rows(installation).keys() == before.keys()


def test_a_record_of_a_former_version_shows_no_key_and_is_readable_by_none(
    installation: Installation,
) -> None:
    installation.add_tenant("acme", **{**FAST, "sources": [{"name": "pushed", "type": "records"}]})
    session = installation.session()
    session.reconcile()
    ref = session.catalog.tenants.get("acme").ref
    scope, key = f"team {planted.GITHUB}", planted.SLACK
    for id_, metadata in (
        ("scoped", SourceMetadata(access_scope=scope)),
        ("keyed", SourceMetadata(metadata={key: "x", f"{key[:-1]}9": "y", "floor": 3})),
    ):
        record = PushedRecord("pushed", "page", id_, f"The {id_} valve.", "text/plain", metadata)
        put_record(session.catalog.records, ref, record, scope=metadata.access_scope or "public")
    session.catalog.access.grant(ref, scope, ["ada"])
    installation.synced("acme")
    documents = {d.uri: d for d in session.catalog.documents.all("acme")}
    scoped, keyed = documents["pushed/page/scoped"], documents["pushed/page/keyed"]
    assert (scoped.status, keyed.status) == ("FAILED", "READY")
    assert "access scope contains a credential" in (scoped.error_message or "")
    assert planted.GITHUB not in scoped.access_scope
    assert len(keyed.metadata) == 3
    assert keyed.metadata["floor"] == 3
    assert planted.SLACK not in repr(keyed)
    asked = SearchRequest.of(query="valve", mode="text", caller=Caller(principals=("ada",)))
    found = installation.retriever.search("acme", asked).hits
    assert [hit.uri for hit in found] == ["pushed/page/keyed"]
