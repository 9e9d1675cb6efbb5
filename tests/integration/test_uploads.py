"""Uploaded files pass through the chain like other documents, and leave nothing behind."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from pypdfium2 import PdfDocument

from rag_assets.common.clock import Clock
from rag_assets.common.errors import (
    NoUploadsSource,
    OnHold,
    UnknownDocument,
    UploadRefused,
    UploadUnreadable,
)
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.erasure import purge_documents
from rag_assets.pipeline.listing import list_documents
from rag_assets.pipeline.parsing import parse_documents
from rag_assets.pipeline.removal import purge_tenant
from rag_assets.pipeline.retention import prune_tenant
from rag_assets.pipeline.slices import plan_work
from rag_assets.pipeline.upkeep import compact_lake
from rag_assets.pipeline.uploads import (
    BlobDifference,
    UploadService,
    compare_blobs,
    get_uploads_source,
    sweep_blobs,
)
from rag_assets.privacy.masker import get_masker
from rag_assets.storage.catalog.uploads.model import Upload, UploadResult
from tests.driving import Driver, drain, tenant_named_after
from tests.dumps import is_blob
from tests.installation import FAST, Installation

SEALS = b"# Seals\n\nThe lighthouse keeper counted seventeen grey seals at dawn.\n"
BOATS = b"# Boats\n\nEvery boat is moored with two lines before nightfall.\n"
GULLS = b"# Gulls\n\nThe gulls of the northern pier steal sandwiches.\n"
BROKEN = b"%PDF-1.7\nnothing of this is a page\n%%EOF\n"


@dataclass
class UploadTenant:
    """A tenant that accepts uploads."""

    driver: Driver
    installation: Installation
    id: str
    clock: Clock = field(default_factory=Clock)

    @contextmanager
    def within(self) -> Iterator[TenantContext]:
        with self.driver.locked(self.id) as ctx:
            yield replace(ctx, clock=self.clock)

    @property
    def _uploads(self) -> UploadService:
        session = self.driver.session
        local = session.settings.local
        return UploadService(session.catalog, self.context.blobs, lambda: get_masker(local))

    @cached_property
    def context(self) -> TenantContext:
        return self.installation.context(self.id)

    def add(self, name: str, content: bytes, *, replaces: str | None = None) -> UploadResult:
        ctx = self.context
        with self._uploads.receive(ctx.ref) as received:
            received.write(content)
            return self._uploads.accept(
                ctx.ref,
                get_uploads_source(ctx.tenant),
                received,
                file_name=name,
                by="eve",
                replaces=replaces,
            )

    def remove(self, upload_id: str) -> bool:
        return self._uploads.remove(self.context.ref, upload_id, "eve")

    def enable(self, upload_id: str, *, enabled: bool) -> bool:
        ctx = self.context
        return ctx.catalog.uploads.set_enabled(ctx.ref, upload_id, "eve", enabled=enabled)

    def sync(self) -> Any:
        with self.within() as ctx:
            return drain(ctx, self.driver.scanner)

    def upload(self, upload_id: str) -> Upload:
        uploads = self.driver.session.catalog.uploads.all(self.id)
        return next(upload for upload in uploads if upload.id == upload_id)

    def found(self, query: str) -> set[str]:
        hits = self.installation.search(self.id, query, mode="text", top_k=20)
        return {hit.title for hit in hits}

    def blobs(self) -> set[str]:
        ctx = self.context
        of_tenant = ctx.blobs.tenant(ctx.ref.id, ctx.ref.incarnation)
        return {blob.sha256 for blob in of_tenant.all()}

    def path_of(self, sha256: str) -> Path:
        ctx = self.context
        root = Path(ctx.settings.blobs_url) / ctx.ref.id / str(ctx.ref.incarnation)
        return root / "blobs" / sha256[:2] / sha256

    def differences(self) -> list[BlobDifference]:
        ctx = self.context
        return list(
            compare_blobs(
                ctx.catalog,
                ctx.blobs,
                ctx.ref,
                is_read=lambda _: True,
                older_than=datetime.now(UTC) + timedelta(minutes=1),
                bytes_per_second=1e9,
            )
        )


Make = Callable[..., UploadTenant]


@pytest.fixture
def make(shared_installation: Installation, driver: Driver, request: pytest.FixtureRequest) -> Make:
    def made(**config: Any) -> UploadTenant:
        tenant_id = tenant_named_after(request)
        sources = [{"name": "uploads", "type": "uploads"}]
        shared_installation.add_tenant(tenant_id, **{**FAST, "sources": sources, **config})
        driver.session.catalog  # noqa: B018 - opened before threads use it
        tenant = UploadTenant(driver, shared_installation, tenant_id)
        with tenant.within():
            return tenant

    return made


def encrypted_pdf() -> bytes:
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer, encrypt=StandardEncryption("of the user", "of the owner"))
    canvas.drawString(100, 700, "Nobody reads this without the password.")
    canvas.save()
    assert PdfDocument(buffer.getvalue(), password="of the user")
    return buffer.getvalue()


def plain_pdf() -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.drawString(100, 700, "The harbour master keeps a ledger of all pilots.")
    canvas.save()
    return buffer.getvalue()


def bomb() -> bytes:
    """Return a Word document whose text expands a thousandfold."""
    import zipfile

    buffer = io.BytesIO()
    types = '<Override ContentType="application/vnd.openxmlformats-officedocument.{}.main+xml"/>'
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", types.format("wordprocessingml.document"))
        relationship = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        archive.writestr(
            "_rels/.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r" Type="{relationship}/officeDocument"'
            ' Target="word/document.xml"/></Relationships>',
        )
        archive.writestr("word/document.xml", b" " * 300_000_000)
    return buffer.getvalue()


def test_an_upload_is_found_replaced_and_deleted(make: Make) -> None:
    tenant = make()
    seals = tenant.add("seals.md", SEALS)
    assert (seals.upload.status, seals.duplicate) == ("PROCESSING", False)
    assert tenant.add("other name.md", SEALS).duplicate
    done = tenant.sync()
    assert (done["added"], done["failed"]) == (1, 0)
    assert tenant.found("grey seals") == {"Seals"}
    assert tenant.upload(seals.upload.id).status == "READY"
    assert tenant.sync() == {}
    changed = tenant.add("boats.md", BOATS, replaces=seals.upload.id)
    assert changed.upload.id == seals.upload.id
    assert tenant.upload(seals.upload.id).status == "PROCESSING"
    # The former version answers until the new one is indexed.
    assert tenant.found("grey seals") == {"Seals"}
    tenant.sync()
    assert tenant.found("grey seals boat") == {"Boats"}
    assert tenant.blobs() == {changed.upload.content_sha256}
    assert tenant.remove(seals.upload.id)
    assert not tenant.remove(seals.upload.id)
    assert tenant.found("boat") == set()
    assert tenant.blobs() == set()
    tenant.sync()
    assert tenant.installation.entries(tenant.id) == {}
    assert tenant.add("boats.md", BOATS).upload.id != seals.upload.id
    assert tenant.sync()["added"] == 1
    assert tenant.found("boat") == {"Boats"}


def test_a_failing_replacement_leaves_the_former_version_and_can_be_tried_again(
    make: Make,
) -> None:
    tenant = make()
    id_ = tenant.add("seals.md", SEALS).upload.id
    tenant.sync()
    tenant.add("seals.pdf", BROKEN, replaces=id_)
    tenant.sync()
    failed = tenant.upload(id_)
    assert failed.status == "FAILED"
    assert failed.error_message
    assert tenant.found("grey seals") == {"Seals"}
    again = tenant.add("seals.pdf", BROKEN)
    assert (again.upload.id, again.duplicate, again.upload.status) == (id_, False, "PROCESSING")
    tenant.sync()
    assert tenant.upload(id_).status == "FAILED"
    tenant.add("seals.md", GULLS, replaces=id_)
    tenant.sync()
    assert tenant.upload(id_).status == "READY"
    assert tenant.found("seals gulls") == {"Gulls"}


def test_a_disabled_upload_is_found_by_nobody_and_costs_nothing_when_it_is_back(
    make: Make,
) -> None:
    tenant = make()
    id_ = tenant.add("seals.md", SEALS).upload.id
    tenant.add("boats.md", BOATS)
    tenant.sync()
    assert tenant.enable(id_, enabled=False)
    assert not tenant.enable(id_, enabled=False)
    assert tenant.found("grey seals boat") == {"Boats"}
    assert tenant.upload(id_).status == "DISABLED"
    tenant.sync()
    assert len(tenant.installation.entries(tenant.id)) == 1
    tenant.clock = replace(tenant.clock, ahead=timedelta(days=30))
    with tenant.within() as ctx:
        compact_lake(ctx)
        sweep_blobs(ctx.catalog, ctx.blobs, ctx.ref, ctx.clock)
    tenant.enable(id_, enabled=True)
    done = tenant.sync()
    assert (done["added"], done["embedded"], done["parsed"]) == (1, 0, 0)
    assert tenant.found("grey seals") >= {"Seals"}
    assert tenant.upload(id_).status == "READY"
    # Former content is not kept forever.
    with tenant.within() as ctx:
        compact_lake(ctx)
        tenant.remove(id_)
    tenant.sync()
    with tenant.within() as ctx:
        compact_lake(ctx)
        assert len(ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)) == 1


def test_equal_uploads_at_once_become_one(make: Make) -> None:
    tenant = make()
    tenant.installation.retriever  # noqa: B018 - the connections are made one after the other
    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(lambda number: tenant.add(f"{number}.md", SEALS), range(8)))
    assert len({one.upload.id for one in stored}) == 1
    assert sorted(one.duplicate for one in stored) == [False] + 7 * [True]
    assert tenant.blobs() == {stored[0].upload.content_sha256}


def test_every_upload_ends_ready_or_failed_whatever_it_is_called_and_holds(make: Make) -> None:
    tenant = make()
    names = {
        "../../../etc/passwd.md": "passwd.md",
        "x" * 10_000 + ".md": None,
        "invoice\u202edm.exe.md": "invoicedm.exe.md",
        "control\x00\x1b[2J\n.md": "control[2J .md",
    }
    for number, (given, shown) in enumerate(names.items()):
        upload = tenant.add(given, b"# Number %d\n\nwords of it\n" % number).upload
        assert upload.file_name == (shown or upload.file_name)
    named_md = tenant.add("report.md", plain_pdf()).upload
    assert named_md.media_type == "application/pdf"
    broken = [
        tenant.add("locked.pdf", encrypted_pdf()).upload,
        tenant.add("bomb.docx", bomb()).upload,
        tenant.add("broken.pdf", BROKEN).upload,
    ]
    tenant.sync()
    states = {upload.id: upload for upload in tenant.context.catalog.uploads.all(tenant.id)}
    assert {upload.status for upload in states.values()} == {"READY", "FAILED"}
    assert {id_ for id_, of in states.items() if of.status == "FAILED"} == {u.id for u in broken}
    assert {states[upload.id].error_kind for upload in broken} == {
        "encrypted",
        "too-complex",
        "unreadable",
    }
    assert tenant.found("harbour master") == {"report.md"}


def test_nothing_is_kept_of_what_is_refused(make: Make) -> None:
    sources = [{"name": "uploads", "type": "uploads", "media_types": ["application/pdf"]}]
    tenant = make(sources=sources)
    for name, content, error in (
        ("empty.pdf", b"", UploadRefused),
        ("\u202e/", SEALS, UploadRefused),
        ("picture.pdf", b"\x89PNG\r\n\x1a\n0000", UploadUnreadable),
        ("seals.md", SEALS, UploadUnreadable),
    ):
        with pytest.raises(error):
            tenant.add(name, content)
    with pytest.raises(UnknownDocument):
        tenant.add("a.pdf", plain_pdf(), replaces="0" * 32)
    root = Path(tenant.context.settings.blobs_url) / tenant.id
    assert [path for path in root.rglob("*") if is_blob(path)] == []
    assert tenant.context.catalog.uploads.all(tenant.id) == []
    files = tenant.context.tenant.model_copy(update={"sources": ()})
    with pytest.raises(NoUploadsSource):
        get_uploads_source(files)


def test_what_is_deleted_while_it_is_processed_does_not_come_back(make: Make) -> None:
    tenant = make()
    gone = tenant.add("seals.md", SEALS).upload.id
    kept = tenant.add("boats.md", BOATS).upload.id
    with tenant.within() as ctx:
        list_documents(ctx, tenant.driver.scanner)
        work = plan_work(ctx, "a run")
        tenant.remove(gone)
        tenant.add("gulls.md", GULLS, replaces=kept)
        parse_documents(work.context, work)
    tenant.sync()
    assert tenant.found("seals boat gulls") == {"Gulls"}
    assert [upload.id for upload in tenant.context.catalog.uploads.all(tenant.id)] == [kept]


def test_lost_altered_and_nobodys_blobs_are_told_apart_and_mended_by_uploading_again(
    make: Make,
) -> None:
    tenant = make()
    lost, altered, whole = (
        tenant.add(name, content).upload
        for name, content in (("s.md", SEALS), ("b.md", BOATS), ("g.md", GULLS))
    )
    tenant.sync()
    assert tenant.differences() == []
    tenant.path_of(lost.content_sha256).unlink()
    tenant.path_of(altered.content_sha256).write_bytes(BOATS.replace(b"two", b"ten"))
    stray = "ab" + 62 * "0"
    tenant.path_of(stray).parent.mkdir(exist_ok=True)
    tenant.path_of(stray).write_bytes(b"of nobody")
    assert {(d.fault, d.sha256, d.document_ids) for d in tenant.differences()} == {
        ("missing", lost.content_sha256, (lost.id,)),
        ("altered", altered.content_sha256, (altered.id,)),
        ("nobody's", stray, ()),
    }
    with tenant.within() as ctx:
        assert sweep_blobs(ctx.catalog, ctx.blobs, ctx.ref, ctx.clock) == 0
        later = replace(ctx.clock, ahead=timedelta(days=2))
        assert sweep_blobs(ctx.catalog, ctx.blobs, ctx.ref, later) == 1
    assert tenant.add("s.md", SEALS).duplicate
    assert tenant.add("b.md", BOATS).duplicate
    assert tenant.differences() == []
    assert tenant.blobs() == {u.content_sha256 for u in (lost, altered, whole)}


def test_a_lost_file_fails_its_document_and_no_other(make: Make) -> None:
    tenant = make()
    lost = tenant.add("seals.md", SEALS).upload
    tenant.add("boats.md", BOATS)
    tenant.path_of(lost.content_sha256).unlink()
    tenant.sync()
    assert tenant.upload(lost.id).status == "FAILED"
    assert "upload the file again" in (tenant.upload(lost.id).error_message or "")
    assert tenant.upload(lost.id).error_kind == "lost"
    assert tenant.found("seals boat") == {"Boats"}
    tenant.add("seals.md", SEALS)
    tenant.sync()
    assert tenant.found("seals") >= {"Seals"}


def test_purge_prune_and_removal_take_files_and_what_is_held_stays(make: Make) -> None:
    tenant = make(retention_days={"upload": 365})
    seals, boats, gulls = (
        tenant.add(name, content).upload
        for name, content in (("s.md", SEALS), ("b.md", BOATS), ("g.md", GULLS))
    )
    tenant.sync()
    held = tenant.installation.command(
        "hold", "set", tenant.id, "--document", gulls.id, "--reason", "a claim"
    )
    assert held.code == 0, held.err
    with tenant.within() as ctx:
        with pytest.raises(OnHold):
            purge_documents(ctx, [gulls.id], by="a test")
        receipt = purge_documents(ctx, [seals.id], by="a test")
    assert receipt.counts["blobs"] == {"blobs": 1}
    assert receipt.proof["found"]["blobs"] == 0
    assert receipt.proof["complete"], receipt.proof
    assert tenant.blobs() == {boats.content_sha256, gulls.content_sha256}
    # A held upload leaves the answers, but its file stays.
    tenant.remove(gulls.id)
    tenant.sync()
    assert tenant.found("seals gulls") == set()
    tenant.clock = replace(tenant.clock, ahead=timedelta(days=400))
    with tenant.within() as ctx:
        assert prune_tenant(ctx, by="a test").documents == 1
        sweep_blobs(ctx.catalog, ctx.blobs, ctx.ref, ctx.clock)
    assert tenant.blobs() == {gulls.content_sha256}
    lifted = tenant.installation.command(
        "hold", "lift", tenant.id, "--document", gulls.id, "--reason", "settled"
    )
    assert lifted.code == 0, lifted.err
    with tenant.within() as ctx:
        sweep_blobs(ctx.catalog, ctx.blobs, ctx.ref, ctx.clock)
    assert tenant.blobs() == set()
    tenant.add("s.md", SEALS)
    root = Path(tenant.context.settings.blobs_url) / tenant.id
    session = tenant.driver.session
    record = session.catalog.tenants.get(tenant.id)
    removed = purge_tenant(
        session.catalog, session.lake, session.store, record, session.settings, by="a test"
    )
    assert removed.counts["blobs"] == {"blobs": 1}
    assert not root.exists()


def test_a_listing_of_uploads_costs_one_statement(make: Make) -> None:
    from sqlalchemy import event

    tenant = make()
    for number in range(5):
        tenant.add(f"{number}.md", b"# Number %d\n\nwords\n" % number)
    ctx = tenant.context
    from rag_assets.pipeline.source_listing import open_sources

    statements: list[str] = []
    engine = ctx.catalog.database._engine
    (source,) = open_sources(ctx.tenant, ctx.settings, ctx.catalog)

    def count(*arguments: Any) -> None:
        statements.append(arguments[2])

    event.listen(engine, "before_cursor_execute", count)
    try:
        assert len(list(source.list())) == 5
    finally:
        event.remove(engine, "before_cursor_execute", count)
    assert len(statements) == 1, statements


def test_operators_upload_list_replace_and_delete(make: Make, tmp_path: Path) -> None:
    tenant = make()
    good, bad = tmp_path / "seals.md", tmp_path / "picture.md"
    good.write_bytes(SEALS)
    bad.write_bytes(b"\x89PNG\r\n\x1a\n0000")
    run = tenant.installation.command
    added = run("uploads", "add", tenant.id, str(good), str(bad), "--json")
    assert added.code == 1
    said = json.loads(added.out.splitlines()[0])
    (upload,) = said["uploads"]
    assert (upload["file_name"], upload["duplicate"]) == ("seals.md", False)
    assert "PNG" in said["refused"][0]["error"]
    tenant.sync()
    listed = run("uploads", "list", tenant.id, "--json").json["uploads"]
    assert [(u["id"], u["status"]) for u in listed] == [(upload["id"], "READY")]
    assert "seals.md" in run("uploads", "list", tenant.id).out
    good.write_bytes(BOATS)
    replaced = run("uploads", "add", tenant.id, str(good), "--replaces", upload["id"])
    assert replaced.code == 0, replaced.err
    tenant.sync()
    assert tenant.found("seals boat") == {"Boats"}
    assert run("uploads", "disable", tenant.id, upload["id"]).code == 0
    assert tenant.found("boat") == set()
    assert run("uploads", "enable", tenant.id, upload["id"]).code == 0
    assert run("uploads", "delete", tenant.id, upload["id"]).code == 0
    assert run("uploads", "delete", tenant.id, upload["id"]).code == 1
    assert tenant.blobs() == set()
