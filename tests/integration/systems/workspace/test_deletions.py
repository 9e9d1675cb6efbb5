"""A deleted page takes its records and subpages with it, through every interface."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from rag_assets.storage.blobs.store import open_blobs
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

STAYS = {("template", "t"), ("comment", "on-other")}


@pytest.fixture
def site(shared_installation: Installation, request: pytest.FixtureRequest) -> Iterator[Site]:
    name = f"gone-{zlib.crc32(request.node.name.encode())}"
    with workspace(shared_installation, name) as made:
        yield made


def push(site: Site, type_: str, id_: str, **body: Any) -> None:
    assert site.put(type_, id_, body) == "queued"


def hang(site: Site) -> None:
    """Push a page with a comment, a file, a subpage with a comment, and a database."""
    for uuid, said in (
        ("other", {}),
        ("top", {}),
        ("below", {"parent": "top"}),
        ("rows", {"parent": "below", "kind": "database"}),
    ):
        assert site.send("PUT", f"/rag/tree/{uuid}", said).status_code == 200
    for uuid in ("top", "below"):
        push(site, "page", uuid, title=f"Numbat {uuid}")
        push(site, "comment", f"on-{uuid}", page_uuid=uuid, text=f"A numbat on {uuid}.")
    push(site, "comment", "on-other", page_uuid="other", text="Another numbat.")
    push(
        site, "db_row", "row", database_uuid="rows", values=[{"name": "n", "value_text": "Numbat"}]
    )
    push(site, "template", "t", name="Numbat template")
    push(site, "file", "f", page_uuid="top", name="notes.md")
    assert site.put_content("f", b"# Notes\n\nThe numbat file.\n").status_code == 202
    site.sync()
    assert len(site.hits("numbat", top_k=20)) == 8


def found(site: Site) -> set[tuple[str, str]]:
    return {(hit["source_type"], hit["source_id"]) for hit in site.hits("numbat", top_k=20)}


def reconcile(site: Site, *named: tuple[str, str], **parameters: Any) -> Any:
    lines = "\n".join(json.dumps({"type": type_, "id": id_}) for type_, id_ in named)
    parameters = {"apply": True, **parameters}
    return site.client.post(
        "/rag/reconcile", params=parameters, content=lines, headers=site.headers()
    )


def blobs_of(site: Site) -> list[str]:
    ref = site.catalog.tenants.get(site.id).ref
    store = open_blobs(site.driver.session.settings)
    return [blob.sha256 for blob in store.tenant(ref.id, ref.incarnation).all()]


@pytest.mark.parametrize("door", ["tree", "record", "line", "manifest"])
def test_a_deleted_page_takes_all_that_hangs_on_it(site: Site, door: str) -> None:
    hang(site)
    if door == "tree":
        assert site.send("DELETE", "/rag/tree/top").json()["documents"] == 6
    elif door == "record":
        gone = site.send("DELETE", "/rag/records/page/top")
        assert (gone.status_code, gone.json()["outcome"]) == (202, "removed")
    elif door == "line":
        [gone] = site.lines([{"op": "delete", "type": "page", "id": "top"}])
        assert gone["outcome"] == "removed"
    else:
        # The manifest names a comment whose page is gone.
        answer = reconcile(site, *STAYS, ("comment", "on-top"))
        assert (answer.status_code, answer.json()["removed"]) == (200, 6), answer.text
    for _ in ("at once", "after the next sync"):
        assert found(site) == STAYS
        site.sync()
    assert blobs_of(site) == []
    assert site.status()["queue_depth"] == 0


def test_a_page_that_was_never_pushed_takes_its_comments_along(site: Site) -> None:
    site.send("PUT", "/rag/tree/bare", {})
    push(site, "comment", "c", page_uuid="bare", text="A numbat.")
    site.sync()
    assert site.send("DELETE", "/rag/records/page/bare").json()["outcome"] == "unchanged"
    assert found(site) == set()


def test_a_page_that_is_called_as_the_root_is_takes_no_other_page_along(site: Site) -> None:
    hang(site)
    push(site, "page", "root", title="Numbat root")
    push(site, "comment", "on-root", page_uuid="root", text="A numbat.")
    site.send("DELETE", "/rag/records/page/root")
    site.sync()
    assert len(found(site)) == 8
    assert ("comment", "on-root") not in found(site)


def have_pages_of_two_sources(site: Site) -> None:
    others = [{"name": name, "type": "records"} for name in ("pushed", "former")]
    site.installation.configure(site.id, sources=others)
    site.driver.session.reconcile()
    site.send("PUT", "/rag/tree/top", {})


def test_a_page_that_another_source_has_as_well_takes_nothing_along(site: Site) -> None:
    have_pages_of_two_sources(site)
    for source in ("pushed", "former"):
        path = f"/rag/records/page/top?source={source}"
        assert site.send("PUT", path, {"title": f"Numbat {source}"}).status_code == 202
    site.send("PUT", "/rag/records/comment/c?source=pushed", {"page_uuid": "top", "text": "Numbat"})
    site.sync()
    assert reconcile(site, source="former").json()["removed"] == 1
    assert site.send("DELETE", "/rag/records/page/top?source=former").status_code == 202
    assert found(site) == {("page", "top"), ("comment", "c")}
    site.send("DELETE", "/rag/records/page/top?source=pushed")
    assert found(site) == set()


@pytest.mark.parametrize("uuid", ["top", "root"])
def test_lines_on_a_page_that_another_source_has_as_well_are_kept(site: Site, uuid: str) -> None:
    have_pages_of_two_sources(site)
    for source in ("pushed", "former"):
        path = f"/rag/records/page/{uuid}?source={source}"
        assert site.send("PUT", path, {"title": "Numbat"}).status_code == 202
    text = {"block_id": "b", "type": "paragraph", "text": "A numbat block."}
    comment = {"op": "put", "type": "comment", "page_uuid": uuid}
    lines = [
        {**comment, "id": "before", "text": "A numbat before."},
        {"op": "put", "type": "block", "id": "b", "page_uuid": uuid, "block": text},
        {"op": "delete", "type": "page", "id": uuid},
        {"op": "put", "type": "block", "id": "b", "page_uuid": uuid, "block": text},
        {**comment, "id": "after", "text": "A numbat after."},
    ]
    sent = site.client.post(
        "/rag/records",
        params={"source": "former"},
        content="\n".join(map(json.dumps, lines)),
        headers=site.headers(),
    )
    outcomes = [one["outcome"] for one in sent.json()["lines"]]
    assert outcomes == ["queued", "unchanged", "removed", "unknown-page", "queued"]
    site.sync()
    assert found(site) == {("page", uuid), ("comment", "before"), ("comment", "after")}


def test_lines_after_a_deletion_are_kept_and_those_before_it_are_not(site: Site) -> None:
    hang(site)
    comment = {"op": "put", "type": "comment", "page_uuid": "top", "text": "A numbat."}
    page = {"op": "put", "type": "page", "id": "top", "title": "Numbat anew"}
    lines = [{**comment, "id": "before"}, {"op": "delete", "type": "page", "id": "top"}, page]
    site.lines([*lines, {**comment, "id": "after"}])
    site.sync()
    assert found(site) == STAYS | {("page", "top"), ("comment", "after")}


def test_lines_are_followed_in_their_order_on_pages_below_as_well(site: Site) -> None:
    hang(site)
    comment = {"op": "put", "type": "comment", "page_uuid": "below", "text": "A numbat."}
    block = {"op": "put", "type": "block", "page_uuid": "below"}
    text = {"type": "paragraph", "text": "A numbat block."}
    outcomes = site.lines(
        [
            {**comment, "id": "before"},
            {**block, "id": "b", "block": {"block_id": "b", **text}},
            {"op": "delete", "type": "page", "id": "top"},
            {**block, "id": "c", "block": {"block_id": "c", **text}},
            {**comment, "id": "after"},
        ]
    )
    assert [outcome["outcome"] for outcome in outcomes][2:] == ["removed", "unknown-page", "queued"]
    site.sync()
    assert found(site) == STAYS | {("comment", "after")}


def test_a_manifest_keeps_pages_below_that_it_names(site: Site) -> None:
    hang(site)
    answer = reconcile(site, *STAYS, ("page", "below"), ("comment", "on-below"), ("db_row", "row"))
    assert answer.json()["removed"] == 3, answer.text
    below = {("page", "below"), ("comment", "on-below"), ("db_row", "row")}
    assert found(site) == STAYS | below


def test_the_guard_counts_what_hangs_on_pages_as_well(site: Site) -> None:
    site.send("PUT", "/rag/tree/top", {})
    push(site, "page", "top", title="Numbat")
    comment = {"op": "put", "type": "comment", "page_uuid": "top", "text": "A numbat."}
    site.lines([{**comment, "id": f"c{number}"} for number in range(30)])
    named = [("comment", f"c{number}") for number in range(30)]
    held = reconcile(site, *named)
    assert held.status_code == 409
    assert held.json()["type"].endswith(":deletions-held")
    assert reconcile(site, *named, allow_deletes=True).json()["removed"] == 31
