"""A different credential in every input, searched for in all outputs and stores."""

from __future__ import annotations

import base64
import io
import json
import random
import socket
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2 as httpx
import polars as pl
import psycopg
import pytest
from psycopg import sql

from rag_assets.ingest.sources.model import compute_document_id
from tests.installation import CommandResult, Installation
from tests.security.recording_server import DIMENSIONS, RecordingServer, recording_server

pytestmark = pytest.mark.long

QUESTION = "at what pressure does the valve open"
PLACES = (
    *("folder", "file", "encoded-file", "twin-a", "twin-b", "broken", "title", "heading", "text"),
    *("record-text", "record-title", "record-uri", "record-encoded-uri", "record-twice-encoded"),
    *("record-tag", "record-value", "record-list"),
    *("refused-type", "refused-id", "refused-scope", "refused-key", "refused-encoded-id"),
    *("http-query", "http-encoded", "http-answer", "mcp", "mcp-http", "cli", "cli-answer"),
    *("python", "filter-path", "filter-tag", "unknown-tenant", "unknown-option", "grant"),
)
ORIGINALS = "rag_catalog.source_records"
"""The one place that keeps what was pushed as it was sent."""


def credential(place: str) -> str:
    """Return a token of a known kind, different for each input."""
    drawn = random.Random(place)
    return "gh" + "p_" + "".join(drawn.choices(string.ascii_letters + string.digits, k=36))


SECRETS = {place: credential(place) for place in PLACES}


def percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def forms(secret: str) -> Iterator[bytes]:
    """Yield part of a credential in every encoding in which it might be written, in lower case."""
    piece = secret[6:34]
    yield piece.lower().encode()
    yield percent(piece).lower().encode()
    yield percent(percent(piece)).lower().encode()
    yield piece.encode().hex().encode()
    for at in range(3):
        # Whatever precedes it, base64 is the same from the first whole triple on.
        yield base64.b64encode(piece[at : at + 24].encode()).lower()


FORMS = {place: tuple(forms(secret)) for place, secret in SECRETS.items()}


def found_in(data: bytes | str) -> set[str]:
    raw = (data.encode("utf-8", "replace") if isinstance(data, str) else data).lower()
    return {place for place, pieces in FORMS.items() if any(piece in raw for piece in pieces)}


@dataclass
class Done:
    """An installation after all operations, and the outputs of each."""

    installation: Installation
    provider: RecordingServer
    said: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def serving(done: Done) -> Iterator[httpx.Client]:
    port = free_port()
    process = done.installation.start("serve", "--port", str(port))
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
    try:
        until = time.monotonic() + 90
        while True:
            with suppress(httpx.TransportError):
                client.get("/health")
                break
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.2)
        yield client
    finally:
        client.close()
        process.terminate()
        out, err = process.communicate(timeout=60)
        done.said["serve"] = out + err


def write_files(folder: Path) -> None:
    inside = folder / f"in {SECRETS['folder']}"
    inside.mkdir()
    (inside / "pressure.md").write_text("The valve of the folder opens at 4 bar.\n")
    (folder / f"{SECRETS['file']}.md").write_text("The valve of the file opens at 4 bar.\n")
    encoded = percent(SECRETS["encoded-file"])
    (folder / f"{encoded}.md").write_text("The valve of the encoded file opens at 4 bar.\n")
    for twin in ("twin-a", "twin-b"):
        (folder / f"twin-{SECRETS[twin]}.md").write_text(f"The {twin} valve opens at 4 bar.\n")
    (folder / f"broken-{SECRETS['broken']}.md").write_bytes(b"Broken \xff\xfe\x00")
    (folder / "contents.md").write_text(
        f"# Title {SECRETS['title']}\n\nThe valve opens at 4 bar.\n\n"
        f"## Heading {SECRETS['heading']}\n\nThe second valve opens at 5 bar.\n\n"
        f"## Text\n\nThe key is {SECRETS['text']} by the valve.\n\n## After\n\nAll valves open.\n"
    )


def push(done: Done, client: httpx.Client, headers: dict[str, str]) -> None:
    plain: dict[str, dict[str, Any]] = {
        "record-text": {"text": f"The valve's key is {SECRETS['record-text']} here."},
        "record-title": {"title": f"Of {SECRETS['record-title']}"},
        "record-uri": {"uri": f"https://wiki.example/?key={SECRETS['record-uri']}"},
        "record-encoded-uri": {
            "uri": f"https://wiki.example/?key={percent(SECRETS['record-encoded-uri'])}&page=3"
        },
        "record-twice-encoded": {
            "uri": f"https://wiki.example/{percent(percent(SECRETS['record-twice-encoded']))}"
        },
        "record-tag": {"tags": ["plain", SECRETS["record-tag"]]},
        "record-value": {"metadata": {"owner": SECRETS["record-value"], "floor": 3}},
        "record-list": {"metadata": {"owners": ["ada", SECRETS["record-list"]]}},
    }
    for place, more in plain.items():
        body = {"text": f"The valve of {place} opens at 4 bar.", **more}
        answer = client.put(f"/rag/records/page/{place}", json=body, headers=headers)
        done.statuses[place] = answer.status_code
        done.said[place] = answer.text
    text = {"text": "The refused valve opens at 4 bar."}
    refused: dict[str, tuple[str, dict[str, Any]]] = {
        "refused-type": (f"{SECRETS['refused-type']}/1", text),
        "refused-id": (f"page/{SECRETS['refused-id']}", text),
        "refused-encoded-id": (
            f"page/{quote(percent(SECRETS['refused-encoded-id']), safe='')}",
            text,
        ),
        "refused-scope": ("page/scope", {**text, "scope": SECRETS["refused-scope"]}),
        "refused-key": ("page/key", {**text, "metadata": {SECRETS["refused-key"]: "x"}}),
    }
    for place, (where, body) in refused.items():
        answer = client.put(f"/rag/records/{where}", json=body, headers=headers)
        done.statuses[place] = answer.status_code
        done.said[place] = answer.text


def ask(done: Done, client: httpx.Client, headers: dict[str, str]) -> None:
    for place, secret in (
        ("http-query", SECRETS["http-query"]),
        ("http-encoded", percent(SECRETS["http-encoded"])),
    ):
        body = {"query": f"{QUESTION} with {secret}?", "rerank": True}
        answer = client.post("/rag/query", json=body, headers=headers)
        done.statuses[place] = answer.status_code
        done.said[place] = answer.text
        done.answers[place] = answer.json()
    body = {"query": f"{QUESTION} with {SECRETS['http-answer']}?"}
    answer = client.post("/rag/answer", json=body, headers=headers)
    done.statuses["http-answer"] = answer.status_code
    done.said["http-answer"] = answer.text
    filters = {"paths": [SECRETS["filter-path"]], "tags": [SECRETS["filter-tag"]]}
    body = {"query": QUESTION, "filters": filters}
    done.said["filters"] = client.post("/rag/query", json=body, headers=headers).text
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "rag_search",
            "arguments": {"query": f"{QUESTION} {SECRETS['mcp-http']}"},
        },
    }
    accepts = {**headers, "Accept": "application/json, text/event-stream"}
    answer = client.post("/mcp", json=call, headers=accepts)
    done.said["mcp-http"] = answer.text


def speak_mcp() -> str:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello |= {"clientInfo": {"name": "a", "version": "1"}}
    asked = {"name": "rag_search", "arguments": {"query": f"{QUESTION} {SECRETS['mcp']}"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked},
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "rag_assets.cli", "mcp", "leaky"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for line in lines:
            running.stdin.write(json.dumps(line) + "\n")
        running.stdin.flush()
        said = running.stdout.readline() + running.stdout.readline()
        running.stdin.close()
        rest, err = running.stdout.read(), running.stderr.read() if running.stderr else ""
    assert "valve" in said, err
    return said + rest + err


@pytest.fixture(scope="module")
def done(shared_installation: Installation) -> Iterator[Done]:
    installation = shared_installation
    with recording_server() as provider, pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        done = Done(installation, provider)
        folder = installation.home.parent / "sources" / "leaky"
        folder.mkdir(parents=True)
        write_files(folder)
        key = "a-key-of-a-test"
        environment.setenv("PROVIDER_KEY", key)
        given = {"base_url": provider.url, "api_key": "$PROVIDER_KEY"}
        prices = {"input_per_million": 1.0, "output_per_million": 1.0}
        installation.add_tenant(
            "leaky",
            root=folder,
            sources=[
                {"name": "files", "type": "files", "root": str(folder)},
                {"name": "pushed", "type": "records"},
            ],
            embedder={
                "provider": "openai-compatible",
                "model": "m",
                "dimensions": DIMENSIONS,
                **given,
            },
            retrieval={
                "rerank": {
                    "url": f"{provider.url}/rerank",
                    "model": "m",
                    "api_key": "$PROVIDER_KEY",
                }
            },
            chat_model={"provider": "openai-compatible", "model": "m", "prices": prices, **given},
        )
        with installation.fork_server():
            run(done)
        yield done


def run(done: Done) -> None:
    installation = done.installation

    def said(name: str, *arguments: str) -> CommandResult:
        result = installation.cli(*arguments)
        done.said[name] = result.out + result.err
        return result

    assert said("first sync", "sync", "leaky").code == 0, done.said
    token = installation.command(
        "tokens", "create", "leaky", "--role", "admin", "--principal", "chief", "--json"
    ).json["token"]
    headers = {"Authorization": f"Bearer {token}"}
    with serving(done) as client:
        push(done, client, headers)
        assert said("second sync", "sync", "leaky", "--json").code == 0, done.said["second sync"]
        ask(done, client, headers)
    done.said["mcp"] = speak_mcp()
    said("plan", "plan", "leaky", "--json")
    said("documents", "documents", "leaky", "--json")
    said("cli", "search", "leaky", f"{QUESTION} {SECRETS['cli']}")
    said("cli-answer", "answer", "leaky", f"{QUESTION} {SECRETS['cli-answer']}")
    assert said("unknown-tenant", "search", SECRETS["unknown-tenant"], "valve").code == 1
    assert said("unknown-option", "search", f"--{SECRETS['unknown-option']}").code == 2
    assert said("grant", "access", "grant", "leaky", SECRETS["grant"], "ada").code == 1
    installation.search("leaky", f"{QUESTION} {SECRETS['python']}")
    said("check", "check", "leaky", "--json")
    # Closing it writes its events.
    installation.__dict__.pop("retriever").close()


def test_all_questions_were_asked_and_all_records_pushed(done: Done) -> None:
    wrong = {
        place: status
        for place, status in done.statuses.items()
        if status != (422 if place.startswith("refused") else 202 if "record" in place else 200)
    }
    assert wrong == {}, {place: done.said[place] for place in wrong}
    assert {"embeddings", "completions", "rerank"} <= done.provider.received.keys()
    assert "4 bar" in done.said["cli"]
    assert "4 bar" in done.said["cli-answer"]
    assert "4 bar" in done.said["mcp-http"]


def test_no_output_holds_a_credential(done: Done) -> None:
    for name, text in done.said.items():
        assert found_in(text) == set(), name


def test_nothing_that_leaves_the_installation_holds_one(done: Done) -> None:
    for kind, bodies in done.provider.received.items():
        assert len(bodies) >= 1
        for body in bodies:
            assert found_in(body) == set(), kind
    embedded = b"".join(done.provider.received["embeddings"])
    assert QUESTION.encode() in embedded
    assert QUESTION.encode() in b"".join(done.provider.received["completions"])
    assert QUESTION.encode() in b"".join(done.provider.received["rerank"])


def test_postgres_holds_one_only_where_originals_are_kept(done: Done) -> None:
    with psycopg.connect(done.installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        tables = connection.execute(
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        filled = set()
        for table in tables:
            name = ".".join(table)
            query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(*table))
            for (row,) in connection.execute(query):
                filled.add(name)
                # Bytes are shown as hexadecimals.
                found = found_in(row)
                if name == ORIGINALS:
                    found = {place for place in found if not place.startswith("record")}
                assert found == set(), name
        assert {ORIGINALS, "rag_catalog.events", "rag_catalog.documents"} <= filled
        assert {"rag_dagster.event_logs", "rag_dagster.runs", "rag_dagster.run_tags"} <= filled


def test_the_index_holds_none_in_any_field(done: Done) -> None:
    prefix = done.installation.environment["RAG_ASSETS_INDEX_PREFIX"]
    url = f"{done.installation.environment['RAG_ASSETS_ELASTICSEARCH_URL']}/{prefix}-*/_search"
    answer = httpx.request("POST", url, json={"size": 5000, "query": {"match_all": {}}})
    hits = answer.json()["hits"]["hits"]
    assert len(hits) >= 12
    assert found_in(answer.content) == set()


def test_no_file_of_the_installation_holds_one(done: Done) -> None:
    texts = 0
    for path in sorted(done.installation.home.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        assert found_in(data) == set(), path
        if path.suffix == ".parquet":
            stored = repr(pl.read_parquet(io.BytesIO(data)).rows())
            assert found_in(stored) == set(), path
            texts += "valve" in stored
    assert texts >= 2


def test_documents_stay_apart_and_are_read(done: Done) -> None:
    documents = json.loads(done.said["documents"])["documents"]
    uris = [document["uri"] for document in documents]
    assert len(set(uris)) == len(uris)
    assert sum("twin-" in uri for uri in uris) == 2
    failed = [d["uri"] for d in documents if d["status"] == "FAILED"]
    assert ["broken-" in uri for uri in failed] == [True]
    for what in ("folder", "file", "encoded file"):
        hits = done.installation.search("leaky", f"valve of the {what}", mode="text")
        assert any(hit.text == f"The valve of the {what} opens at 4 bar." for hit in hits), what
    for twin in ("twin-a", "twin-b"):
        true = compute_document_id("files", f"twin-{SECRETS[twin]}.md")
        [hit] = [
            hit
            for hit in done.installation.search("leaky", f"{twin} valve", mode="text", top_k=20)
            if hit.text.startswith(f"The {twin} ")
        ]
        assert hit.document_id == true


def test_masking_keeps_the_rest_of_a_text(done: Done) -> None:
    stored = {d["uri"] for d in json.loads(done.said["documents"])["documents"]}
    encoded = next(uri for uri in stored if uri.endswith("&page=3"))
    assert encoded.startswith("https://wiki.example/?key=")
    events = done.installation.session().catalog.events.latest(
        "leaky", kind="rag_search_started", limit=100
    )
    asked = [event.payload["query"] for event in events]
    assert len([query for query in asked if query.startswith(QUESTION)]) >= 8
    assert sum("*" in query for query in asked) >= 7


def test_a_tenant_may_have_questions_sent_as_they_are(done: Done) -> None:
    installation = done.installation
    installation.configure("leaky", privacy={"send_unmasked_questions": True})
    installation.session().reconcile()  # as the daemon does: a question does not change a tenant
    sent = credential("sent as it is")
    before = {kind: len(bodies) for kind, bodies in done.provider.received.items()}
    result = installation.cli("answer", "leaky", f"{QUESTION} {sent}")
    installation.configure("leaky", privacy=None)
    installation.session().reconcile()
    assert result.code == 0, result.err
    for kind in ("embeddings", "completions", "rerank"):
        new = b"".join(done.provider.received[kind][before[kind] :])
        assert sent.encode() in new, kind
    with psycopg.connect(installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        events = connection.execute("SELECT payload::text FROM rag_catalog.events").fetchall()
    assert not any(sent in payload for (payload,) in events)
