"""Uploads over HTTP: responses, refusals before the file is read, and stored files."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rag_assets.api import guard
from rag_assets.api.settings import ServiceSettings
from rag_assets.client import AsyncClient, Client
from rag_assets.client.errors import Invalid, NotFound
from rag_assets.storage.blobs.store import open_blobs
from tests.dumps import is_blob
from tests.integration.api.conftest import SETTINGS, Api, running

SEALS = b"# Seals\n\nThe lighthouse keeper counted seventeen grey seals at dawn.\n"
BOATS = b"# Boats\n\nEvery boat is moored with two lines before nightfall.\n"


def send(api: Api, name: str, content: bytes, *, token: str = "", **fields: str) -> Any:
    bearer = token or api.token("chief", role="admin")
    return api.client.post(
        "/rag/uploads",
        files={"file": (name, content)},
        data=fields,
        headers={"Authorization": f"Bearer {bearer}"},
    )


def delete(api: Api, upload_id: str) -> str:
    answer = api.send("DELETE", f"/rag/uploads/{upload_id}")
    assert answer.status_code == 202
    return str(answer.json()["outcome"])


def kind(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["type"].rpartition(":")[2]


def kept_files(api: Api) -> list[Path]:
    root = Path(api.driver.session.settings.blobs_url) / "acme"
    return sorted(path for path in root.rglob("*") if is_blob(path))


def listed(api: Api) -> dict[str, dict[str, Any]]:
    uploads = api.get(api.token("chief", role="admin"), "/rag/uploads").json()["uploads"]
    return {upload["id"]: upload for upload in uploads}


def hits(api: Api, query: str) -> set[str]:
    found = api.ask(api.token(), query=query, source_types=["upload"]).json()["hits"]
    return {hit["title"] for hit in found}


def test_an_upload_from_its_sending_to_its_end(api: Api) -> None:
    first = send(api, "../seals.md", SEALS)
    assert first.status_code == 202
    upload = first.json()["upload"]
    assert (upload["file_name"], upload["media_type"]) == ("seals.md", "text/markdown")
    assert (upload["status"], upload["uploaded_by"]) == ("PROCESSING", "jwt:chief")
    again = send(api, "again.md", SEALS)
    assert (again.status_code, again.json()["duplicate"]) == (200, True)
    assert again.json()["upload"]["id"] == upload["id"]
    api.driver.sync("acme")
    assert listed(api)[upload["id"]]["status"] == "READY"
    assert hits(api, "grey seals") == {"Seals"}
    replaced = send(api, "boats.md", BOATS, replaces=upload["id"])
    assert (replaced.status_code, replaced.json()["upload"]["id"]) == (202, upload["id"])
    assert hits(api, "grey seals") == {"Seals"}
    api.driver.sync("acme")
    assert hits(api, "grey seals boat") == {"Boats"}
    # A member may read the documents, but not upload.
    assert kind(send(api, "x.md", SEALS, token=api.token())) == (403, "forbidden")
    assert kind(api.get(api.token(), "/rag/uploads")) == (403, "forbidden")
    assert delete(api, upload["id"]) == "removed"
    assert delete(api, upload["id"]) == "unchanged"
    assert hits(api, "boat") == set()
    assert listed(api) == {}
    assert kept_files(api) == []
    api.driver.sync("acme")


def test_a_file_that_is_ready_without_a_passage_says_so(api: Api) -> None:
    sent = {
        "bare.md": (b"---\ntags: [style]\n---\n", "front matter"),
        "seals.md": (SEALS, ""),
    }
    ids = {}
    for name, (content, _) in sent.items():
        ids[name] = send(api, name, content).json()["upload"]["id"]
    api.driver.sync("acme")
    for name, (_, reason) in sent.items():
        upload = listed(api)[ids[name]]
        assert (upload["status"], upload["chunk_count"] == 0) == ("READY", bool(reason))
        assert reason in (upload["note"] or "")
        assert (upload["note"] is None) == (not reason)
        delete(api, ids[name])
    api.driver.sync("acme")


def test_deleting_the_document_deletes_the_upload(api: Api) -> None:
    upload_id = send(api, "seals.md", SEALS).json()["upload"]["id"]
    api.driver.sync("acme")
    gone = api.send("DELETE", f"/rag/documents/{upload_id}")
    assert gone.json()["outcome"] == "removed"
    assert listed(api) == {}
    assert kept_files(api) == []
    api.driver.sync("acme")
    assert hits(api, "seals") == set()


def test_what_is_refused_is_told_why_and_not_kept(api: Api) -> None:
    chief = {"Authorization": f"Bearer {api.token('chief', role='admin')}"}
    others = {"Authorization": f"Bearer {api.token('chief', 'other', role='admin')}"}

    def form(**given: Any) -> tuple[int, str]:
        return kind(api.client.post("/rag/uploads", headers=chief, **given))

    assert kind(send(api, "picture.md", b"\x89PNG\r\n\x1a\n000")) == (415, "unsupported-file")
    assert "PNG" in send(api, "picture.md", b"\x89PNG\r\n\x1a\n000").json()["detail"]
    assert kind(send(api, "empty.md", b"")) == (422, "upload-refused")
    assert kind(send(api, "/", SEALS)) == (422, "upload-refused")
    assert form(json={"file": "x"}) == (422, "upload-refused")
    assert form(files={"other": ("a.md", SEALS)}) == (422, "upload-refused")
    assert form(files=[("file", ("a.md", SEALS)), ("file", ("b.md", BOATS))]) == (
        422,
        "upload-refused",
    )
    assert kind(send(api, "a.md", SEALS, replaces="not an id")) == (422, "invalid-request")
    assert kind(send(api, "a.md", SEALS, replaces="0" * 32)) == (404, "unknown-document")
    assert kind(send(api, "large.md", b"x" * 4_000_001)) == (413, "too-large")
    assert kind(send(api, "larger.md", b"x" * 5_000_000)) == (413, "too-large")
    nowhere = api.client.post("/rag/uploads", files={"file": ("a.md", SEALS)}, headers=others)
    assert kind(nowhere) == (409, "no-uploads-source")
    compressed = {**chief, "Content-Encoding": "gzip"}
    answer = api.client.post("/rag/uploads", files={"file": ("a.md", SEALS)}, headers=compressed)
    assert answer.status_code == 415
    assert kept_files(api) == []
    assert listed(api) == {}


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        yield connection


def head(token: str, length: int, *more: str) -> bytes:
    lines = [
        "POST /rag/uploads HTTP/1.1",
        "Host: service.example",
        f"Authorization: Bearer {token}",
        f"Content-Length: {length}",
        "Content-Type: multipart/form-data; boundary=bound",
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def answer_of(connection: socket.socket) -> bytes:
    received = b""
    while part := connection.recv(65_536):
        received += part
        if b"}" in received:
            break
    return received


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"role": "member"}, b"403"),
        ({"role": "admin", "tenants": ["other"]}, b"409"),
        ({"role": "admin", "tenants": ["unheard-of"]}, b"404"),
    ],
)
@pytest.mark.parametrize("expect", [[], ["Expect: 100-continue"]])
def test_who_may_not_upload_is_told_before_the_file_is_sent(
    api: Api, address: str, claims: dict[str, Any], status: bytes, expect: list[str]
) -> None:
    with connected(address) as connection:
        connection.sendall(head(api.token("eve", **claims), 40_000_000, *expect))
        received = answer_of(connection)
    assert received.startswith(b"HTTP/1.1 " + status), received[:200]


def test_who_may_is_asked_to_go_on_and_may_hang_up(api: Api, address: str) -> None:
    token = api.token("chief", role="admin")
    before = kept_files(api)
    with connected(address) as connection:
        connection.sendall(head(token, 3_000_000, "Expect: 100-continue"))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(
            b'--bound\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n'
            + b"x" * 1_000_000
        )
        assert len(kept_files(api)) == len(before) + 1  # received into a temporary file
    deadline = time.monotonic() + 30
    while kept_files(api) != before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert kept_files(api) == before


def test_who_is_too_slow_is_sent_away(api: Api) -> None:
    backend = api.another(SETTINGS)
    backend.file_receiver._slack_seconds = 0.3
    with running(backend) as address, connected(address) as connection:
        connection.sendall(head(api.token("chief", role="admin"), 3_000_000))
        connection.sendall(
            b'--bound\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n'
        )
        received = answer_of(connection)
    assert received.startswith(b"HTTP/1.1 408"), received[:200]
    assert kept_files(api) == []


def test_more_than_some_at_once_wait_or_are_refused(api: Api) -> None:
    settings = ServiceSettings(
        jwt=SETTINGS.jwt, rate=SETTINGS.rate, attempts=SETTINGS.attempts, uploads=1, wait=0
    )
    token = api.token("chief", role="admin")
    with running(api.another(settings)) as address, connected(address) as first:
        first.sendall(head(token, 3_000_000, "Expect: 100-continue"))
        assert first.recv(100).startswith(b"HTTP/1.1 100")
        with connected(address) as second:
            second.sendall(head(token, 3_000_000, "Expect: 100-continue"))
            refused = answer_of(second)
    assert refused.startswith(b"HTTP/1.1 503"), refused[:200]


def test_a_file_larger_than_memory_of_its_own_comes_in_pieces(
    api: Api, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write = guard.ReceivedFile.write

    def noted(self: guard.ReceivedFile, piece: bytes) -> None:
        sizes.append(len(piece))
        write(self, piece)

    monkeypatch.setattr(guard.ReceivedFile, "write", noted)
    content = b"A line of a long file.\n" * 170_000
    with Client(address, api.token("chief", role="admin")) as client:
        uploaded = client.upload("long.txt", content)
        assert (uploaded.upload.size, uploaded.duplicate) == (len(content), False)
        assert sum(sizes) == len(content)
        assert max(sizes) < 1_000_000
        session = api.driver.session
        ref = session.catalog.tenants.get("acme").ref
        blobs = open_blobs(session.settings).tenant(ref.id, ref.incarnation)
        assert b"".join(blobs.stream(uploaded.upload.sha256)) == content
        assert client.delete_upload(uploaded.upload.id).outcome == "removed"


def test_both_clients_upload(api: Api, address: str) -> None:
    token = api.token("chief", role="admin")

    async def by_event_loop() -> str:
        async with AsyncClient(address, token) as client:
            uploaded = await client.upload("seals.md", SEALS)
            listed = await client.uploads()
            assert [upload.id for upload in listed.uploads] == [uploaded.upload.id]
            return uploaded.upload.id

    with Client(address, token) as client:
        upload_id = asyncio.run(by_event_loop())
        assert client.upload("boats.md", BOATS, replaces=upload_id).upload.id == upload_id
        with pytest.raises(NotFound):
            client.upload("boats.md", BOATS + b"more", replaces="0" * 32)
        with pytest.raises(Invalid):
            client.upload("", b"", source="uploads")
        assert client.delete_upload(upload_id).outcome == "removed"
