"""Migration of a catalog whose failed documents have messages for operators alone."""

from __future__ import annotations

from rag_assets.storage.catalog import migrate
from rag_assets.storage.catalog.database import Database
from tests.installation import FAST, Installation
from tests.integration.storage.test_revisions import downgrade, query

KINDS = "SELECT uri, error_kind FROM rag_catalog.documents ORDER BY uri"


def test_the_migration_tells_the_kinds_of_living_failures(installation: Installation) -> None:
    folder = installation.add_tenant("acme", **FAST)
    (folder / "empty.md").write_text("\n")
    (folder / "damaged.pdf").write_bytes(b"%PDF-1.7\nnothing of this is a page\n%%EOF\n")
    (folder / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n000")
    (folder / "whole.md").write_text("# Pump\n\nPrime the pump.\n")
    installation.synced("acme")
    kinds = dict(query(installation, KINDS))
    assert kinds == {
        "files/damaged.pdf": "unreadable",
        "files/empty.md": "empty",
        "files/picture.md": "unsupported",
        "files/whole.md": None,
    }
    downgrade(installation, "0020")
    database = Database(installation.environment["RAG_ASSETS_DATABASE_URL"])
    assert migrate.migrate(database)
    database.close()
    assert dict(query(installation, KINDS)) == kinds
