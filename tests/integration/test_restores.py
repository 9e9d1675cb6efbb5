"""A Postgres dump is restored: nothing that happened since is deleted or allowed again."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from rag_assets.api import restore_watch
from rag_assets.api.app import build_app
from rag_assets.api.backend import Backend
from rag_assets.api.identity import create_token
from rag_assets.api.settings import ServiceSettings
from rag_assets.billing.chat_models import ChatModels
from rag_assets.cli.session import Session
from rag_assets.common.errors import CatalogSetBack, RestorePending
from rag_assets.definitions import build_defs
from rag_assets.pipeline.erasure import purge_documents
from rag_assets.pipeline.mark_keeper import KeptMark, find_deletion_refusal
from rag_assets.pipeline.removal import purge_tenant
from rag_assets.search import AsyncRetriever
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.accounts.panel_sessions import TokenHolder
from rag_assets.storage.catalog.erasure.holds import HoldScope
from rag_assets.tenants.file import TenantsFile
from tests.driving import Driver
from tests.dumps import JOURNAL, MARK, dump, lose_notes, restore
from tests.installation import FAST, Installation
from tests.integration.test_uploads import BOATS, GULLS, SEALS, UploadTenant


@dataclass
class Restored:
    """An installation whose catalog is dumped and later restored."""

    installation: Installation
    driver: Driver
    file: Path
    tenants: list[str] = field(default_factory=list)

    def add(self, name: str, **config: Any) -> UploadTenant:
        """Add a tenant that accepts uploads."""
        sources = [{"name": "uploads", "type": "uploads"}]
        self.installation.add_tenant(name, **{**FAST, "sources": sources, **config})
        tenant = UploadTenant(self.driver, self.installation, name)
        with tenant.within():
            return tenant

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Dump the catalog before the block, and restore it after the block."""
        url = self.installation.environment["RAG_ASSETS_DATABASE_URL"]
        dump(url, self.file)
        yield
        restore(url, self.file)
        # Connections that were idle for a second are tested before they are used again.
        time.sleep(1.1)

    @property
    def session(self) -> Session:
        return self.driver.session

    def compact(self) -> None:
        """Run the weekly job, as if all uploads were two days old."""
        before = time.time() - timedelta(days=2).total_seconds()
        for file in Path(self.session.settings.blobs_url).rglob("blobs/*/*"):
            os.utime(file, (before, before))
        job = build_defs().resolve_job_def("compact")
        assert job.execute_in_process(instance=self.session.instance).success

    def command(self, *arguments: str) -> Any:
        """Run a command that must succeed; return its JSON."""
        done = self.installation.command(*arguments, "--json")
        assert done.code == 0, (done.out, done.err)
        return done.json


@pytest.fixture
def restored(installation: Installation, tmp_path: Path) -> Restored:
    return Restored(installation, Driver(installation), tmp_path / "catalog.dump")


# -- row 11: nothing that the restored catalog does not know is deleted


def lose_nothing(_: Restored) -> None:
    pass


def lose_the_lake(restored: Restored) -> None:
    shutil.rmtree(restored.session.settings.lake_url)


def lose_the_index(restored: Restored) -> None:
    lose_notes(restored.session, "index")


def lose_lake_and_index(restored: Restored) -> None:
    lose_the_lake(restored)
    lose_the_index(restored)


@pytest.mark.parametrize("lose", [lose_nothing, lose_the_lake, lose_the_index, lose_lake_and_index])
def test_an_upload_after_the_dump_outlives_the_weekly_compaction(
    restored: Restored, lose: Callable[[Restored], None]
) -> None:
    tenant = restored.add("acme")
    purged = tenant.add("seals.md", SEALS).upload
    tenant.add("boats.md", BOATS)
    tenant.sync()
    catalog = restored.session.catalog
    _, token = create_token(
        catalog, tenant.context.ref, role="member", principals=[], lifetime=None
    )
    with restored.put_back():
        with tenant.within() as ctx:
            purge_documents(ctx, [purged.id], by="a test")
        catalog.service_tokens.revoke(tenant.context.ref, token.token_id)
        late = tenant.add("gulls.md", GULLS).upload
    lose(restored)
    restored.compact()
    assert late.content_sha256 in tenant.blobs()

    # The operator accepts the security changes first, and then the tenant's losses.
    refused = restored.installation.command("sync", "acme", "--accept-catalog")
    assert refused.code == 1
    assert "accept-restore" in refused.err
    found = restored.command("installation", "accept-restore", "--yes")
    assert [one["kind"] for one in found["lost"]] == ["purged", "token_revoked"]
    assert found["tenants"] == [{"tenant": "acme", "unknown_files": 1}]
    assert not catalog.service_tokens.all("acme")
    restored.compact()
    assert late.content_sha256 in tenant.blobs()
    restored.command("sync", "acme", "--accept-catalog")
    assert tenant.found("seals boats") == {"Boats"}, "the purge was made again"
    restored.compact()
    assert late.content_sha256 not in tenant.blobs()


def test_only_an_upload_after_the_dump_is_noticed_whatever_is_uploaded_then(
    restored: Restored,
) -> None:
    tenant = restored.add("acme")
    tenant.add("seals.md", SEALS)
    tenant.sync()
    with restored.put_back():
        late = tenant.add("gulls.md", GULLS).upload
    # The number of changes is the same as before; only their tags differ.
    tenant.add("boats.md", BOATS)
    restored.compact()
    assert late.content_sha256 in tenant.blobs()
    for number in range(4):
        tenant.add(f"{number}.md", b"# Number %d\n\nMore words.\n" % number)
    restored.compact()
    assert late.content_sha256 in tenant.blobs(), "later changes do not hide it"
    with tenant.within() as ctx, pytest.raises(CatalogSetBack, match="set back"):
        purge_documents(ctx, [late.id], by="a test")
    restored.command("sync", "acme", "--accept-catalog")
    restored.compact()
    assert late.content_sha256 not in tenant.blobs()


def test_data_without_any_mark_are_unknown_and_kept(restored: Restored) -> None:
    tenant = restored.add("acme")
    tenant.add("seals.md", SEALS)
    tenant.sync()
    with restored.put_back():
        late = tenant.add("gulls.md", GULLS).upload
    lose_notes(restored.session)
    with tenant.within() as ctx:
        assert ctx.keeper.compare_marks(ctx.ref) == "unknown"
    restored.compact()
    assert late.content_sha256 in tenant.blobs()
    said = restored.installation.command("installation", "accept-restore")
    assert "acme: 1 uploaded file" in said.out
    restored.command("sync", "acme", "--accept-catalog")
    with tenant.within() as ctx:
        assert ctx.keeper.compare_marks(ctx.ref) == "current"
    restored.compact()
    assert late.content_sha256 not in tenant.blobs()


def test_a_new_tenant_and_a_lost_store_are_current(restored: Restored) -> None:
    tenant = restored.add("acme")
    with tenant.within() as ctx:
        assert ctx.keeper.find_deletion_refusal(ctx.ref) is None
    tenant.add("seals.md", SEALS)
    tenant.sync()
    for places in (("lake",), ("blobs", "index"), ("lake", "blobs")):
        lose_notes(restored.session, *places)
        with tenant.within() as ctx:
            assert ctx.keeper.find_deletion_refusal(ctx.ref) is None
        for notes in (restored.session.lake.notes, tenant.context.blobs.notes):
            kept = KeptMark.parse(notes.read(f"acme/1/{MARK}"))
            assert kept is not None, "what was lost is written again"
            assert not kept.set_back


def test_a_tenant_that_the_dump_lacks_keeps_its_data_until_that_is_accepted(
    restored: Restored,
) -> None:
    restored.add("acme").sync()
    with restored.put_back():
        late = restored.add("late")
        upload = late.add("seals.md", SEALS).upload
        late.sync()
    lose_the_lake(restored)
    TenantsFile(restored.installation.home / "tenants.yaml").remove("late")
    path = late.path_of(upload.content_sha256)
    lose_notes(restored.session, "index")
    restored.compact()
    assert path.exists()
    restored.command("sync", "--all", "--accept-catalog")
    restored.compact()
    assert not path.exists()


def test_removing_a_tenant_again_keeps_uploads_of_its_later_namesake(restored: Restored) -> None:
    acme = restored.add("acme")
    first = acme.add("seals.md", SEALS).upload
    acme.sync()
    with restored.put_back():
        restored.command("tenants", "remove", "acme", "--yes")
        later = restored.add("acme")
        upload = later.add("gulls.md", GULLS).upload
        later.sync()
        path = later.path_of(upload.content_sha256)
    restored.command("installation", "accept-restore", "--yes")
    removed = restored.installation.command("tenants", "remove", "acme", "--yes")
    assert removed.code == 0, removed.err
    assert "no longer contain any of the data" in removed.out
    assert "data of a later tenant 'acme'" in removed.err
    restored.compact()
    assert not list(Path(restored.session.settings.blobs_url).rglob(first.content_sha256))
    assert path.exists()
    restored.command("sync", "--all", "--accept-catalog")
    restored.compact()
    assert not path.exists()


# -- row 12: tokens, grants and holds of the dump are not trusted


@dataclass
class Service:
    """A running service with one worker."""

    client: TestClient
    restored: Restored

    def ask(self, token: str, **body: Any) -> Any:
        return self.client.post(
            "/rag/query",
            json={"query": "seals", "mode": "text", **body},
            headers={"Authorization": f"Bearer {token}"},
        )

    def status(self, token: str) -> int:
        return int(self.ask(token).status_code)

    def wait_for(self, token: str, status: int) -> None:
        deadline = time.monotonic() + 20
        while self.status(token) != status:
            assert time.monotonic() < deadline, (self.status(token), status)
            time.sleep(0.05)


@pytest.fixture
def service(restored: Restored, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(restore_watch, "CHECK_SECONDS", 0.3)
    session = restored.session
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    models = ChatModels(session.catalog, session.settings)
    blobs = open_blobs(session.settings)
    backend = Backend(
        session.catalog, session.store, retriever, ServiceSettings(), models, blobs=blobs
    )
    with TestClient(build_app(backend)) as client:
        yield Service(client, restored)


def member(restored: Restored, tenant_id: str, *principals: str) -> tuple[str, str]:
    """Create a member's token; return it with its id."""
    catalog = restored.session.catalog
    ref = catalog.tenants.get(tenant_id).ref
    token, kept = create_token(catalog, ref, role="member", principals=principals, lifetime=None)
    return token, kept.token_id


@dataclass
class Changed:
    """A tenant whose tokens, grants and holds were changed after the dump.

    Attributes:
        kept: an unchanged token.
        revoked, revoked_id: a revoked token.
        new, new_id: a new token.
    """

    tenant: UploadTenant
    kept: str
    revoked: str
    revoked_id: str
    new: str
    new_id: str

    @property
    def tokens(self) -> tuple[str, ...]:
        return self.kept, self.revoked, self.new


@pytest.fixture
def changed(restored: Restored, service: Service) -> Changed:
    tenant = restored.add("acme", access={"scope": "board"})
    tenant.add("seals.md", SEALS)
    tenant.sync()
    catalog, ref = restored.session.catalog, tenant.context.ref
    catalog.access.grant(ref, "board", ["ada", "eve"])
    kept, _ = member(restored, "acme", "ada")
    revoked, revoked_id = member(restored, "acme", "ada")
    catalog.panel_sessions.begin(ref, b"s" * 32, TokenHolder("operator"))
    catalog.panel_sessions.add_code(ref, b"c" * 32, TokenHolder("operator"))
    assert service.status(kept) == service.status(revoked) == 200
    with restored.put_back():
        assert catalog.service_tokens.revoke(ref, revoked_id)
        assert service.status(revoked) == 401
        new, new_id = member(restored, "acme", "ada")
        catalog.access.revoke(ref, "board", ["eve"])
        catalog.access.grant(ref, "board", ["zoe"])
        assert restored.command("hold", "set", "acme", "--reason", "a claim")
    return Changed(tenant, kept, revoked, revoked_id, new, new_id)


def test_nothing_of_a_restored_catalog_is_trusted(
    restored: Restored, service: Service, changed: Changed
) -> None:
    service.wait_for(changed.revoked, 503)
    for token in (*changed.tokens, "rag_guessed"):
        answer = service.ask(token)
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:rag-assets:problem:restore-pending"
        assert "operator" in answer.json()["detail"]
    assert service.client.get("/health/live").status_code == 200
    session = restored.session
    [upload] = session.catalog.uploads.all("acme")
    assert restored.command("uploads", "delete", "acme", upload.id)
    assert changed.tenant.blobs() == {upload.content_sha256}, "it is held, as only the stores know"
    with changed.tenant.within() as ctx:
        assert isinstance(find_deletion_refusal(ctx), RestorePending)
        record = ctx.catalog.tenants.get("acme")
        with pytest.raises(RestorePending):
            purge_tenant(ctx.catalog, session.lake, ctx.store, record, session.settings, by="x")
    question = ("search", "acme", "seals", "--mode", "text")
    asked = restored.installation.command(*question, "--as", "eve")
    assert asked.code == 1
    assert "accept-restore" in asked.err
    assert restored.command(*question)["hits"] == [], "who names nobody reads what is public"


def test_an_operator_sees_what_a_restored_catalog_lacks_and_accepts_it(
    restored: Restored, service: Service, changed: Changed
) -> None:
    shown = restored.installation.command("installation", "accept-restore")
    assert shown.code == 1
    assert f"token {changed.revoked_id} (member, ada) of tenant acme was revoked on" in shown.out
    assert "and is valid again in this catalog; this change is repeated" in shown.out
    assert f"token {changed.new_id}" in shown.out
    assert "scope 'board' of tenant acme was revoked from eve" in shown.out
    assert "scope 'board' of tenant acme was granted to zoe" in shown.out
    assert "a hold on all documents of tenant acme was set" in shown.out
    service.wait_for(changed.kept, 503)
    accepted = restored.command("installation", "accept-restore", "--yes")
    assert accepted["accepted"]
    made = {one["kind"] for one in accepted["lost"] if one["made_again"]}
    assert made == {"token_revoked", "scope_revoked", "hold_set"}
    service.wait_for(changed.kept, 200)
    assert service.status(changed.revoked) == service.status(changed.new) == 401
    catalog = restored.session.catalog
    assert catalog.access.grants("acme") == {"board": ["ada"]}
    assert [hold.scope for hold in catalog.holds.all("acme")] == [HoldScope()]
    assert catalog.panel_sessions.find(b"s" * 32, use=False) is None
    assert catalog.panel_sessions.find_code(b"c" * 32) is None
    again = restored.command("installation", "accept-restore", "--yes")
    assert (again["standing"], again["lost"]) == ("current", [])


def test_documents_that_were_added_and_purged_after_the_dump_stay_out(restored: Restored) -> None:
    folder = restored.installation.add_tenant("acme", **FAST)
    (folder / "seals.md").write_text("# Seals\n\nSeals sleep on the rocks.\n")
    restored.installation.synced("acme")
    names = [f"page{number}" for number in range(105)]  # more than one journal entry can name
    with restored.put_back():
        for name in names:
            (folder / f"{name}.md").write_text(f"# Page\n\nThe secret of {name}.\n")
        restored.installation.synced("acme")
        documents = restored.session.catalog.documents.all("acme")
        ids = [d.document_id for d in documents if "page" in d.uri]
        assert len(ids) == len(names)
        chosen = [argument for id_ in ids for argument in ("--document", id_)]
        restored.command("purge", "acme", *chosen, "--yes")
        edited = folder / "page7.md"
        edited.write_text("# Page\n\nNothing of that is in it now.\n")
        restored.installation.synced("acme")
    accepted = restored.command("installation", "accept-restore", "--yes")
    lost = [one for one in accepted["lost"] if one["kind"] == "purged"]
    assert [one["made_again"] for one in lost] == [True, True]
    assert restored.installation.command("sync", "acme", "--accept-catalog").code == 0
    uris = {uri for uri, _, _ in restored.installation.entries("acme").values()}
    assert uris == {"files/seals.md", "files/page7.md"}, "what changed after the purge is new"


def test_a_restore_is_noticed_by_a_service_that_starts_after_it(
    restored: Restored, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    tenant = restored.add("acme")
    tenant.add("seals.md", SEALS)
    tenant.sync()
    _, _ = member(restored, "acme")
    revoked, revoked_id = member(restored, "acme")
    with restored.put_back():
        restored.session.catalog.service_tokens.revoke(tenant.context.ref, revoked_id)
    lose_lake_and_index(restored)
    service: Service = request.getfixturevalue("service")
    assert service.status(revoked) == 503
    kept = restored.command("installation", "accept-restore", "--yes", "--keep")
    assert not any(one["made_again"] for one in kept["lost"])
    service.wait_for(revoked, 200)


def test_a_journal_that_every_store_has_lost_is_unknown(
    restored: Restored, request: pytest.FixtureRequest
) -> None:
    tenant = restored.add("acme")
    tenant.add("seals.md", SEALS)
    tenant.sync()
    token, _ = member(restored, "acme")
    lose_notes(restored.session)
    member(restored, "acme")
    service: Service = request.getfixturevalue("service")
    assert service.status(token) == 503
    found = restored.command("installation", "accept-restore", "--yes")
    assert found["standing"] == "unknown"
    service.wait_for(token, 200)


def test_a_restored_dump_that_lacks_nothing_goes_on(restored: Restored, service: Service) -> None:
    tenant = restored.add("acme")
    tenant.add("seals.md", SEALS)
    tenant.sync()
    token, _ = member(restored, "acme")
    with restored.put_back():
        pass
    assert service.status(token) == 200
    with tenant.within() as ctx:
        assert ctx.keeper.find_deletion_refusal(ctx.ref) is None
    other, _ = member(restored, "acme")
    assert service.status(other) == 200


def test_a_removed_tenant_leaves_no_name_in_the_journal(restored: Restored) -> None:
    tenant = restored.add("acme")
    tenant.sync()
    restored.session.catalog.access.grant(tenant.context.ref, "board", ["ada@example.org"])
    journal = Path(restored.session.settings.lake_url) / JOURNAL
    assert "ada@example.org" in journal.read_text()
    with restored.put_back():
        assert restored.command("tenants", "remove", "acme", "--yes")["complete"]
        roots = (restored.session.lake.notes, open_blobs(restored.session.settings).notes)
        for notes in (*roots, restored.session.store.notes):
            assert "ada@example.org" not in (notes.read(JOURNAL) or "")
            assert notes.read(f"acme/1/{MARK}") is None
            kinds = [one["kind"] for one in json.loads(notes.read(JOURNAL) or "")["changes"]]
            assert kinds == ["scope_granted", "tenant_removed"]
    said = restored.installation.command("installation", "accept-restore")
    assert "rag-assets tenants remove acme --yes" in said.out
