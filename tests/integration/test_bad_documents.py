"""Documents that cannot be indexed fail alone, each with its reason; unusual ones are indexed."""

from __future__ import annotations

import errno
import os
import re
import time
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rag_assets.ingest.sources import disk
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.aging import write_old
from tests.unit.ingest.parsing import pdfs

GOOD = "# Good\n\nThis one is fine.\n"
LIMITS = {"parser": {"seconds": 20, "memory_mb": 768}}


def bomb() -> bytes:
    """Return a PDF page whose content unpacks to 1 GB."""
    operators, repeated = b"0 0 m 9 9 l S\n" * 80_000, 950
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    part = packer.compress(operators) + packer.flush(zlib.Z_FULL_FLUSH)  # this part may be repeated
    checksum = 1
    for _ in range(repeated):
        checksum = zlib.adler32(operators, checksum)
    stream = b"\x78\xda" + part * repeated + packer.flush() + checksum.to_bytes(4, "big")
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(stream), stream),
    ]
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 5\n0000000000 65535 f \n"
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % start
    return bytes(out)


def plant(folder: Path) -> None:
    good_pdf = pdfs.laid_out([[("heading", "Manual"), ("body", "Turn the wheel to the left.")]])
    locked = pdfs.laid_out([[("body", "Nobody may read this.")]], password="a" * 8)
    (folder / "good.md").write_text(GOOD)
    (folder / "good.pdf").write_bytes(good_pdf)
    (folder / "encrypted.pdf").write_bytes(locked)
    (folder / "truncated.pdf").write_bytes(good_pdf[: len(good_pdf) // 3])
    (folder / "bomb.pdf").write_bytes(bomb())
    (folder / "binary.md").write_bytes(bytes(range(256)) * 64)
    (folder / "null.md").write_bytes(b"# Title\n\nBefore\x00after\n")
    (folder / "invalid.md").write_bytes(b"# Title\n\nCaf\xe9\n")
    (folder / "empty.md").write_bytes(b"")
    (folder / "blank.md").write_text(" \n\n\t\n")
    (folder / "not.pdf").write_text("This is no PDF.\n")
    (folder / "line.md").write_text("# One line\n\n" + "word and again " * 150_000)
    (folder / "deep.md").write_text("# Deep\n\n" + ">" * 20_000 + " quoted\n\n" + "- " * 20_000)


REASONS = {
    "encrypted.pdf": "encrypted|password",
    "truncated.pdf": "damaged|truncated|not a valid|cannot be read|broken|no PDF",
    "bomb.pdf": "memory|long|seconds|costly|characters|text",
    "binary.md": "not (UTF-8 )?text",
    "null.md": "NUL|null",
    "invalid.md": "UTF-8",
    "empty.md": "empty",
    "blank.md": "empty",
    "not.pdf": "not a PDF",
}


@pytest.mark.timeout(240)
def test_the_bad_fail_alone_with_a_reason_and_within_their_limits(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("bad", **FAST, **LIMITS)
    plant(folder)
    started = time.monotonic()
    done = driver.sync("bad")
    assert time.monotonic() - started < 4 * LIMITS["parser"]["seconds"]
    documents = {
        d.uri.removeprefix("files/"): d for d in driver.session.catalog.documents.all("bad")
    }
    failed = {name: d for name, d in documents.items() if d.status == "FAILED"}
    assert failed.keys() == REASONS.keys()
    for name, document in failed.items():
        reason = document.error_message or ""
        assert re.search(REASONS[name], reason, re.IGNORECASE), (name, reason)
        assert "Traceback" not in reason
        assert "Nobody may read" not in reason
    assert done["failed"] == len(REASONS)
    for name in ("good.md", "good.pdf", "line.md", "deep.md"):
        assert documents[name].status == "READY", documents[name].error_message
    assert shared_installation.search("bad", "Turn the wheel", mode="text")[0].page == 1
    assert shared_installation.search("bad", "This one is fine", mode="text")
    # Failed documents are not retried until they change.
    assert driver.sync("bad")["failed"] == 0
    (folder / "null.md").write_text("# Title\n\nNow it is right.\n")
    assert driver.sync("bad")["upserted"] == 1


def test_other_limits_have_what_met_them_tried_again(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("limits", parser={"seconds": 0.05}, **FAST)
    (folder / "a.md").write_text(GOOD + "- an item\n" * 40_000)
    assert driver.sync("limits")["failed"] == 1
    [document] = driver.session.catalog.documents.all("limits")
    assert document.status == "FAILED"
    shared_installation.configure("limits", parser={"seconds": 60})
    assert driver.sync("limits")["parsed"] == 1
    [document] = driver.session.catalog.documents.all("limits")
    assert document.status == "READY"


def test_a_file_above_the_size_limit_fails_until_the_limit_is_raised(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("size", **FAST)
    large = folder / "large.md"
    with large.open("wb") as stream:
        stream.write(b"# Large\n\n")
        stream.truncate(50 * 1024 * 1024 + 1)
    (folder / "fine.md").write_text(GOOD)
    driver.sync("size")
    standing = {d.uri: d for d in driver.session.catalog.documents.all("size")}
    assert standing["files/fine.md"].status == "READY"
    assert standing["files/large.md"].status == "FAILED"
    assert "large" in (standing["files/large.md"].error_message or "")
    source = {"name": "files", "type": "files", "root": str(folder), "max_bytes": 10}
    shared_installation.configure("size", sources=[source])
    (folder / "fine.md").write_text(GOOD + "More.\n")
    driver.sync("size")
    standing = {d.uri: d for d in driver.session.catalog.documents.all("size")}
    assert standing["files/fine.md"].status == "FAILED"
    assert shared_installation.search("size", "This one is fine", mode="text")  # as before


ODD = [
    b"new\nline.md",
    "Ünïcödé – 文書 🙂.md".encode(),
    b"n" * 252 + b".md",
    b"undecodable-\xff\xfe.md",
    b"tab\there.md",
    b" leading and trailing .md",
    b"percent%41.md",
    b"-dash.md",
    "right\u202eto-left.md".encode(),
]


def test_any_file_name_is_found_by(shared_installation: Installation, driver: Driver) -> None:
    folder = shared_installation.add_tenant("odd", **FAST)
    for number, name in enumerate(ODD):
        path = os.path.join(os.fsencode(folder), name)  # noqa: PTH118 - a name of bytes
        with open(path, "w") as stream:  # noqa: PTH123
            stream.write(f"The text of file number{number}.\n")
    driver.sync("odd")
    from rag_assets.ingest.sources.model import parse_path

    listed = shared_installation.command("documents", "odd", "--json")
    assert listed.code == 0, listed.err
    documents = listed.json["documents"]
    assert {d["status"] for d in documents} == {"READY"}
    uris = {parse_path(d["uri"]).encode("utf-8", "surrogateescape"): d["uri"] for d in documents}
    assert uris.keys() == set(ODD)
    assert all(uri.isprintable() and uri.isascii() for uri in uris.values())
    table = shared_installation.command("documents", "odd")
    assert table.code == 0
    assert "\u202e" not in table.out
    for number, name in enumerate(ODD):
        hits = shared_installation.search("odd", f"number{number}", mode="text")
        assert hits[0].uri == uris[name]
        assert (hits[0].title or "").isprintable()
    # Each can also be changed and deleted.
    os.unlink(os.path.join(os.fsencode(folder), ODD[3]))  # noqa: PTH108, PTH118
    done = driver.sync("odd")
    assert (done["removed"], done["deleted"]) == (1, 1)


def test_what_is_ignored_linked_or_outside_is_not_indexed(
    shared_installation: Installation, driver: Driver, tmp_path: Path
) -> None:
    folder = shared_installation.add_tenant("ignored", **FAST)
    outside = tmp_path / "outside.md"
    outside.write_text("# Outside\n\nMust not be read.\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "inside.md").write_text("# Tree\n\nMust not be read.\n")
    (folder / ".gitignore").write_text("drafts/\n*.tmp.md\n!kept.tmp.md\n")
    (folder / "drafts").mkdir()
    for name in ("drafts/a.md", "b.tmp.md", "kept.tmp.md", "plain.md", "image.png", "UPPER.MD"):
        (folder / name).write_text(f"# {name}\n\nText of {name}.\n")
    (folder / "link.md").symlink_to(outside)
    (folder / "tree").symlink_to(tmp_path / "tree")
    (folder / "loop").symlink_to(folder)
    driver.sync("ignored")
    found = {uri for uri, _, _ in shared_installation.entries("ignored").values()}
    assert found == {"files/kept.tmp.md", "files/plain.md", "files/UPPER.MD"}
    (folder / ".gitignore").write_text("plain.md\n")
    done = driver.sync("ignored")
    assert (done["removed"], done["added"]) == (1, 2)


def test_a_disk_that_fails_once_delays_a_document_and_loses_none(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_installation.add_tenant("failing-disk", **FAST)
    write_old(folder / "page.md", "# Page\n\nThe tide is high.\n")
    reads = 0
    opened = disk.open_regular

    def open_once(name: str, folder: int | None) -> int | None:
        nonlocal reads
        reads += 1
        if reads == 2:  # the listing has read it once
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return opened(name, folder)

    monkeypatch.setattr(disk, "open_regular", open_once)
    driver.run_once("failing-disk")
    catalog = driver.session.catalog
    [document] = catalog.documents.all("failing-disk")
    assert document.status == "FAILED"
    assert document.error_kind == "source-unavailable"
    assert "Input/output error" in (document.error_message or "")
    assert document.retry_at is not None
    assert document.retry_at < datetime.now(UTC) + timedelta(minutes=2)
    with driver.locked("failing-disk") as ctx:
        catalog.quarantine.retry_transient_failures(ctx.ref)
    driver.sync("failing-disk")
    [document] = catalog.documents.all("failing-disk")
    assert document.status == "READY"
    assert shared_installation.search("failing-disk", "tide")
