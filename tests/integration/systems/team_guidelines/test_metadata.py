"""Guidelines that were indexed before their entries had the ids of their project."""

from __future__ import annotations

from typing import Any

import pytest
from alembic import command

from rag_assets.pipeline.uploads import Uploads, uploads_source
from rag_assets.privacy.masker import masker_of
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.migrate import alembic_config, migrate
from rag_assets.tenants.model import Tenant
from tests.driving import Driver
from tests.installation import FAST, Installation

TEXT = b"# Seals\n\nThe lighthouse keeper counted seventeen grey seals at dawn.\n"


def metadata(installation: Installation, tenant: str) -> list[Any]:
    ctx = installation.context(tenant)
    serving = ctx.catalog.generations.serving(tenant)
    assert serving is not None
    stored = ctx.store.entries.stored(serving.index_name, ctx.owner(serving))
    return [hit.fields["metadata"] for hit in stored]


def test_the_migration_has_them_written_anew_and_nothing_embedded(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {"organization": "acme", "project": "web"}
    installation.add_tenant("web", profile="team-guidelines", **ids, **FAST)
    source = {"name": "guidelines", "type": "uploads"}
    installation.configure("web", sources=[source])
    driver = Driver(installation)
    catalog, settings = driver.session.catalog, driver.session.settings
    catalog.organizations.put("acme", has_opted_in=True)
    record = catalog.tenants.get("web")
    uploads = Uploads(catalog, open_blobs(settings), lambda: masker_of(settings.local))
    takes = uploads_source(Tenant.from_config(record.config))
    with uploads.receive(record.ref) as received:
        received.write(TEXT)
        uploads.accept(record.ref, takes, received, file_name="seals.md", by="chief")
    with monkeypatch.context() as before:
        before.setattr(Tenant, "labels", {})
        assert driver.sync("web")["upserted"] == 1
    assert metadata(installation, "web") == [{}]
    assert driver.sync("web")["upserted"] == 0

    database, identity = (
        Database(installation.environment["RAG_ASSETS_DATABASE_URL"]),
        catalog.installation.create(),
    )
    with database.begin() as connection:
        command.downgrade(alembic_config(connection), "0018")
    assert migrate(database)
    database.close()
    catalog.installation.create(identity.id)

    done = driver.sync("web")
    assert (done["upserted"], done["embedded"], done["parsed"]) == (1, 0, 0)
    assert metadata(installation, "web") == [{"organizationId": "acme", "projectId": "web"}]
    [state] = catalog.upload_states.page("web")
    assert (state.status, state.chunk_count) == ("READY", 1)
    assert state.token_count
