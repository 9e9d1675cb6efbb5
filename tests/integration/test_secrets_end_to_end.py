"""Planted credentials reach no store, log or output; the rest of each document does."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import httpx2 as httpx
import polars as pl
import psycopg
import pytest
from psycopg import sql

from rag_assets.cli.runs import Runner
from tests.installation import FAST, CommandResult, Installation
from tests.unit.ingest.parsing.test_masking import MAKERS
from tests.unit.privacy.secrets import planted

KINDS = {
    "openai": planted.OPENAI,
    "github": planted.GITHUB,
    "aws": planted.AWS_ID,
    "jwt": planted.JWT,
    "slack": planted.SLACK,
}
PEM = planted.pem()
CONFIG = {**FAST, "chunker": {"chunker": "heading", "max_tokens": 60, "overlap": 8}}
FILLER = "The harbour master keeps a log of every ship that comes in before the tide turns. "


def fragments() -> dict[str, bytes]:
    """Return parts of every credential in lower case."""
    pieces = {kind: token[-20:] for kind, token in KINDS.items()}
    pieces |= {f"pem line {n}": line for n, line in enumerate(PEM.splitlines()[1:-1])}
    return {kind: piece.lower().encode() for kind, piece in pieces.items()}


def found_in(data: bytes) -> list[str]:
    lowered = data.lower()
    return [kind for kind, fragment in fragments().items() if fragment in lowered]


def document(kind: str, secret: str) -> str:
    return (
        f"# Handbook of {kind}\n\n{FILLER * 4}\n\n"
        f"## Access\n\nThe key is {secret} and opens the api.\n\n"
        f"## Afterwards {kind}\n\n{FILLER * 4}\n"
    )


def write_pdf(path: Path) -> None:
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

    styles = getSampleStyleSheet()
    story: list[object] = [Paragraph("Handbook of pdf", styles["Heading1"])]
    for kind, token in KINDS.items():
        story += [
            Paragraph(f"Chapter {kind}", styles["Heading2"]),
            Paragraph(FILLER * 6, styles["BodyText"]),
            PageBreak(),
            Paragraph(f"Key {token}", styles["Heading2"]),
            Paragraph(f"Use {token} to get in.", styles["BodyText"]),
            PageBreak(),
        ]
    template = SimpleDocTemplate(str(path), title=f"Manual {planted.GITHUB}")
    template.build(story)


@pytest.fixture(scope="module")
def outputs(shared_installation: Installation) -> dict[str, CommandResult]:
    """Index, inspect and check a tenant full of credentials; return the outputs of commands."""
    folder = shared_installation.add_tenant("leaky", **CONFIG)
    for kind, token in KINDS.items():
        (folder / f"{kind}.md").write_text(document(kind, token))
        titled = f"# Title {token}\n\n{FILLER * 4}\n\n## Heading {token}\n\n{FILLER * 4}\n"
        (folder / f"titled-{kind}.md").write_text(titled)
        below = folder / f"in {token}"
        below.mkdir()
        (below / f"named-{token}.md").write_text(f"No heading.\n\n{FILLER} named {kind}.\n")
        (folder / f"broken-{token}.md").write_bytes(f"# {token}\n\nBroken: ".encode() + b"\xff\xfe")
    fenced = f"# Handbook of pem\n\n{FILLER * 4}\n\n## Key\n\n```\n{PEM}\n```\n"
    (folder / "pem.md").write_text(f"{fenced}\n## Afterwards pem\n\n{FILLER * 4}\n")
    # A body must not get through, wherever it is split.
    (folder / "bare.md").write_text(f"# Handbook of bare\n\n{FILLER * 4}\n\n## Key\n\n{PEM}\n")
    write_pdf(folder / "manual.pdf")
    (folder / "formats").mkdir()
    for suffix, (make, _) in MAKERS.items():
        (folder / f"formats/{planted.OPENAI}.{suffix}").write_bytes(make(planted.OPENAI))
    said = {
        "plan": shared_installation.command("plan", "leaky", "--json"),
        "sync": shared_installation.cli("sync", "leaky", "--json"),
        "documents": shared_installation.command("documents", "leaky"),
        "documents --json": shared_installation.command("documents", "leaky", "--json"),
        "search": shared_installation.command("search", "leaky", f"what opens {planted.OPENAI}?"),
    }
    Runner(shared_installation.session()).run("check_tenant", "leaky")
    # A second run fails midway and reports it.
    (folder / f"late-{planted.SLACK}.md").write_bytes(b"\x00" + planted.SLACK.encode())
    os.utime(folder / "pem.md", (time.time() + 5, time.time() + 5))
    said["second sync"] = shared_installation.cli("sync", "leaky")
    return said


def test_no_command_prints_a_credential(outputs: dict[str, CommandResult]) -> None:
    for name, result in outputs.items():
        assert result.code == 0, (name, result.err)
        assert found_in((result.out + result.err).encode()) == [], name


def test_the_rest_of_each_document_is_there(
    shared_installation: Installation, outputs: dict[str, CommandResult]
) -> None:
    counts = outputs["sync"].json["stages"]
    assert counts["chunks"]["masked_secrets"] >= len(KINDS) + 2
    listed = outputs["documents --json"].json["documents"]
    ready = {d["uri"] for d in listed if d["status"] == "READY"}
    failed = {d["uri"] for d in listed if d["status"] == "FAILED"}
    formats = {uri for uri in ready if uri.startswith("files/formats/")}
    assert len(formats) == len(MAKERS)
    ready -= formats
    assert (len(ready), len(failed)) == (3 * len(KINDS) + 3, len(KINDS))
    indexed = {uri for uri, _, _ in shared_installation.entries("leaky").values()}
    assert indexed - formats == ready
    for kind in [*KINDS, "pem"]:
        hits = shared_installation.search("leaky", f"Afterwards {kind}", mode="text", top_k=50)
        # The passages before and after a credential may be merged into one hit.
        own = [hit for hit in hits if hit.uri == f"files/{kind}.md"]
        assert {hit.heading_path[0] for hit in own} == {f"Handbook of {kind}"}
        assert any(f"Afterwards {kind}" in hit.text for hit in own)


def test_the_lake_holds_none(
    shared_installation: Installation, outputs: dict[str, CommandResult]
) -> None:
    texts = 0
    for path in sorted((shared_installation.home / ".local").rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        assert found_in(data) == [], path
        if path.suffix == ".parquet":
            stored = repr(pl.read_parquet(io.BytesIO(data)).rows()).encode()
            assert found_in(stored) == [], path
            texts += b"The harbour master" in stored
    assert texts >= 2  # parsed text and chunks: the search covered the right files


def test_the_index_holds_none(
    shared_installation: Installation, outputs: dict[str, CommandResult]
) -> None:
    prefix = shared_installation.environment["RAG_ASSETS_INDEX_PREFIX"]
    url = f"{shared_installation.environment['RAG_ASSETS_ELASTICSEARCH_URL']}/{prefix}-*/_search"
    answer = httpx.request("POST", url, json={"size": 5000, "query": {"match_all": {}}})
    hits = answer.json()["hits"]["hits"]
    assert len(hits) == len(shared_installation.entries("leaky"))
    assert "text" in hits[0]["_source"]
    assert "terms" in hits[0]["_source"]
    assert found_in(answer.content) == []


def test_postgres_holds_none_neither_ours_nor_dagsters(
    shared_installation: Installation, outputs: dict[str, CommandResult]
) -> None:
    with psycopg.connect(shared_installation.environment["RAG_ASSETS_DATABASE_URL"]) as connection:
        tables = connection.execute(
            "SELECT schemaname || '.' || tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        filled = set()
        for (table,) in tables:
            query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(*table.split(".")))
            rows = connection.execute(query).fetchall()
            if rows:
                filled.add(table)
            for (row,) in rows:
                assert found_in(row.encode()) == [], table
    assert {"rag_catalog.events", "rag_catalog.documents", "rag_dagster.event_logs"} <= filled


def test_document_rule_and_line_of_each_are_reported(
    shared_installation: Installation, outputs: dict[str, CommandResult]
) -> None:
    events = shared_installation.session().catalog.events.latest("leaky", kind="secret_masked")
    told = {event.payload["uri"]: event.payload for event in events}
    assert {f"files/{kind}.md" for kind in [*KINDS, "pem", "bare"]} <= told.keys()
    assert told["files/github.md"]["rules"] == {"github-token": 1}
    assert told["files/github.md"]["lines"] == [7]
    assert "files/manual.pdf" in told
    assert all(payload["rules"] for payload in told.values())


def test_the_rest_of_a_passage_is_answered(
    shared_installation: Installation, outputs: dict[str, CommandResult]
) -> None:
    # Masked copies are grouped, so one file is enough.
    paths = {"paths": ("files/github.md",)}
    hits = shared_installation.search("leaky", "opens the api", mode="text", filters=paths)
    [text] = [hit.text for hit in hits if "opens the api" in hit.text]
    assert "and opens the api." in text
    assert "*" * len(planted.GITHUB) in text
