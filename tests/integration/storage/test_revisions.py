"""Migration of a catalog that stored revisions of pushed records as inodes."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config

from rag_assets.ingest.sources.model import NO_METADATA
from rag_assets.storage.catalog import migrate
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.records.model import PushedRecord
from tests.installation import FAST, Installation
from tests.records import put_record

FACTS = "SELECT uri, inode, revision FROM rag_catalog.documents ORDER BY uri"
FORMER_FACTS = "SELECT uri, inode FROM rag_catalog.documents ORDER BY uri"


def query(installation: Installation, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        return connection.execute(statement.encode()).fetchall()


def downgrade(installation: Installation, revision: str) -> None:
    database = Database(installation.environment["RAG_ASSETS_DATABASE_URL"])
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    with database.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    database.close()


def test_the_migration_preserves_documents_and_causes_no_rereading(
    installation: Installation,
) -> None:
    folder = installation.add_tenant("acme", **FAST)
    files = {"name": "files", "type": "files", "root": str(folder)}
    installation.configure("acme", sources=[files, {"name": "pushed", "type": "records"}])
    (folder / "pump.md").write_text("# Pump\n\nPrime the pump.\n")
    # One saved right before it is listed is read once more.
    os.utime(folder / "pump.md", (1_600_000_000, 1_600_000_000))
    session = installation.session()
    session.reconcile()
    ref = session.catalog.tenants.get("acme").ref

    def push(name: str, text: str) -> None:
        record = PushedRecord("pushed", "page", name, text, "text/markdown", NO_METADATA)
        put_record(session.catalog.records, ref, record, scope="public")

    for name in ("one", "two", "later"):
        push(name, f"The valve {name}.")
    installation.synced("acme")
    entries = installation.entries("acme")
    documents = session.catalog.documents.all("acme")
    syncs = {name: s.listing_digest for name, s in session.catalog.syncs.all("acme").items()}
    now = query(installation, FACTS)
    inodes = {uri: inode for uri, inode, _ in now}
    revisions = {uri: revision for uri, _, revision in now}
    assert revisions["files/pump.md"] is None
    assert inodes["files/pump.md"] != 0
    assert {inodes[f"pushed/page/{name}"] for name in ("one", "two", "later")} == {0}

    identity = session.catalog.installation.create()
    downgrade(installation, "0011")
    former = dict(query(installation, FORMER_FACTS))
    assert former == {uri: revisions[uri] or inodes[uri] for uri in inodes}
    database = Database(installation.environment["RAG_ASSETS_DATABASE_URL"])
    assert migrate.migrate(database)
    database.close()
    session.catalog.installation.create(identity.id)

    assert query(installation, FACTS) == now
    assert session.catalog.documents.all("acme") == documents
    stages = installation.synced("acme")
    worked = {(stage, name): n for stage, of in stages.items() for name, n in of.items() if n}
    assert not {
        key for key in worked if key[1] in {"added", "changed", "touched", "parsed", "embedded"}
    }
    assert installation.entries("acme") == entries
    listed = {name: s.listing_digest for name, s in session.catalog.syncs.all("acme").items()}
    assert listed == syncs

    push("later", "The sluice is opened later.")
    stages = installation.synced("acme")
    assert stages["raw_documents"]["changed"] == 1
    texts = {hit.text for hit in installation.search("acme", "sluice")}
    assert any("sluice is opened" in text for text in texts)
