"""Reasons for which a sync is due, and conditions that must not keep it due forever."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from rag_assets.sensors.due import explain_due
from rag_assets.sensors.state import read_tenant_state
from rag_assets.tenants.model import Tenant
from tests.installation import FAST, Installation

LONG_AGO = 1_600_000_000


def due(installation: Installation, tenant_id: str) -> str | None:
    session = installation.session()
    record = session.catalog.tenants.get(tenant_id)
    tenant = Tenant.from_config(record.config)
    state = read_tenant_state(session.catalog, record, tenant, session.settings)
    return explain_due(state, datetime.now(UTC))


def configure(installation: Installation, tenant_id: str, **changes: Any) -> None:
    path = installation.home / "tenants.yaml"
    yaml = YAML()
    document = yaml.load(path.read_text())
    entry = next(entry for entry in document["tenants"] if entry["id"] == tenant_id)
    entry.update(changes)
    with path.open("w") as stream:
        yaml.dump(document, stream)


def write(path: Path, text: str) -> None:
    path.write_text(text)
    os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.fixture
def settled(shared_installation: Installation, request: pytest.FixtureRequest) -> str:
    name = request.node.name.removeprefix("test_").replace("_", "-")[:60].strip("-")
    folder = shared_installation.add_tenant(name, **FAST)
    write(folder / "a.md", "# A\n\nOne sentence.\n")
    shared_installation.synced(name)
    assert due(shared_installation, name) is None
    return name


def test_a_changed_scope_is_due_at_once(shared_installation: Installation, settled: str) -> None:
    configure(shared_installation, settled, access={"scope": "team-only"})
    assert due(shared_installation, settled) is not None
    counts = shared_installation.synced(settled)
    assert counts["embeddings"]["embedded"] == 0
    ctx = shared_installation.context(settled)
    serving = ctx.catalog.generations.serving(settled)
    assert serving is not None
    scopes = {
        entry.fields["access_scope"]
        for entry in ctx.store.entries.stored(serving.index_name, ctx.owner(serving))
    }
    assert scopes == {"team-only"}
    assert due(shared_installation, settled) is None


def test_a_new_chunker_in_the_midst_of_an_import_is_due(
    shared_installation: Installation, settled: str
) -> None:
    ctx = shared_installation.context(settled)
    ctx.catalog.syncs.reset(ctx.ref)
    configure(shared_installation, settled, chunker={"max_tokens": 64, "overlap": 8})
    assert due(shared_installation, settled) is not None
    shared_installation.synced(settled)
    assert due(shared_installation, settled) is None


def test_a_file_over_the_limit_does_not_keep_it_due(
    shared_installation: Installation, settled: str
) -> None:
    folder = shared_installation.home.parent / "sources" / settled
    with (folder / "huge.md").open("wb") as huge:
        huge.truncate(51 * 1024 * 1024)
    shared_installation.synced(settled)
    assert due(shared_installation, settled) is None


def test_a_file_dated_beyond_all_bounds_is_indexed(
    shared_installation: Installation, settled: str
) -> None:
    path = shared_installation.home.parent / "sources" / settled / "future.md"
    path.write_text("# Future\n\nDated far ahead.\n")
    os.utime(path, ns=(2**63 + 10**9, 2**63 + 10**9))
    assert shared_installation.synced(settled)["search_index"]["upserted"] == 1
    assert due(shared_installation, settled) is None


def test_a_source_that_cannot_be_listed_keeps_no_other_waiting(
    shared_installation: Installation, settled: str
) -> None:
    first = shared_installation.home.parent / "sources" / settled
    missing = shared_installation.home.parent / "nowhere"
    sources = [
        {"name": "files", "type": "files", "root": str(first)},
        {"name": "other", "type": "files", "root": str(missing)},
    ]
    configure(shared_installation, settled, sources=sources)
    (first / "a.md").unlink()
    write(first / "b.md", "# B\n\nAnother sentence.\n")
    result = shared_installation.sync(settled)
    assert result.error is not None
    assert "other" in result.error.message
    uris = {uri for uri, _, _ in shared_installation.entries(settled).values()}
    assert uris == {"files/b.md"}


def test_documents_that_are_gone_from_a_held_source_make_room(
    shared_installation: Installation, settled: str
) -> None:
    folder = shared_installation.home.parent / "sources" / settled
    for number in range(30):
        write(folder / f"{number}.md", f"# {number}\n\nText {number}.\n")
    shared_installation.synced(settled)
    # Everything must be parsed again, but no file is left.
    ctx = shared_installation.context(settled)
    ctx.lake.purge()
    configure(shared_installation, settled, chunker={"max_tokens": 64, "overlap": 8})
    for path in folder.iterdir():
        path.unlink()
    result = shared_installation.sync(settled)
    assert result.error is None, result.error
    assert result.held == 31
    assert len(shared_installation.entries(settled)) == 31
