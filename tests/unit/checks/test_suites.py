"""The Great Expectations suites: each rule can fail alone, and nothing uses the network."""

import re
import socket
import urllib.parse
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
import polars as pl
import pytest

from rag_assets.checks.expectations import (
    ChunkUser,
    build_verdict,
    iter_chunk_rows,
    iter_vector_rows,
)
from rag_assets.checks.suites import (
    Columns,
    Validation,
    build_chunk_rules,
    build_vector_rules,
    validate,
)
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.chunking.chunkers import build_chunk_parameters
from rag_assets.ingest.chunking.model import Chunk, compute_text_hash
from rag_assets.storage.lake.model import ChunkSetRow
from rag_assets.storage.lake.rows import EMBEDDINGS, build_chunk_sets_frame
from tests.chunking import lines, parameters_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMING = ("document", "ordinal")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("something went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def chunk_columns(case: str = "files/a.md", **faults: Any) -> Columns:
    """Return three chunks of one document; a fault replaces a column's value in the second row."""
    hashes = [sha256_hex(f"{case} {n}") for n in range(3)]
    columns: dict[str, list[Any]] = {
        "document": [case] * 3,
        "chunk_set": [f"chunks of {case}"] * 3,
        "chunks": [3] * 3,
        "ordinal": [0, 1, 2],
        "start": [0, 8, 20],
        "end": [10, 22, 30],
        "line_start": [1, 2, 4],
        "line_end": [2, 4, 4],
        "token_count": [1, 220, 30],
        "size": [6] * 3,
        "limit": [220] * 3,
        "characters": [10, 14, 10],
        "text_sha256": list(hashes),
        "rehashed": list(hashes),
    }
    for name, value in faults.items():
        columns[name][1] = value
    return columns


def vector_columns(case: str, **faults: Any) -> Columns:
    """Return three vectors of one document; a fault replaces a column's value in the second row."""
    columns: dict[str, list[Any]] = {
        "document": [case] * 3,
        "text_sha256": [sha256_hex(f"{case} {n}") for n in range(3)],
        "vector_bytes": [12] * 3,
        "created_at": [NOW] * 3,
    }
    for name, value in faults.items():
        columns[name][1] = value
    return columns


def broken_by_case(outcome: Validation) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for rule in outcome.broken:
        assert rule.rows == len(rule.examples)
        for case, *_ in rule.examples:
            found.setdefault(str(case), set()).add(rule.description)
    return found


@pytest.mark.slow
def test_each_rule_for_chunks_fails_on_its_own_fault_alone(tmp_path: Path) -> None:
    within = "a chunk is within the limit of its chunker"
    cases: dict[str, tuple[dict[str, Any], str | None]] = {
        "healthy": ({}, None),
        "ordinal twice": ({"ordinal": 2}, "a chunk set has one chunk per ordinal"),
        "ordinal skipped": ({"ordinal": 3}, "ordinals are below the number of chunks"),
        "negative ordinal": ({"ordinal": -1}, "ordinals count from 0"),
        "no token": ({"token_count": 0}, "a chunk has at least one token"),
        "a token too many": ({"size": 221}, within),
        "white space": ({"characters": 0}, "a chunk contains more than white space"),
        "empty span": ({"end": 8}, "a chunk ends after it starts"),
        "negative offset": ({"start": -1}, "offsets count from 0"),
        "lines reversed": ({"line_end": 1}, "the last line is not before the first line"),
        "line 0": ({"line_start": 0}, "lines count from 1"),
        "altered": ({"rehashed": "0" * 64}, "the hash equals the hash of the embedded text"),
        "no tokens": ({"token_count": None}, "token count is not missing"),
        "no start": ({"start": None}, "start is not missing"),
        "no end": ({"end": None}, "end is not missing"),
        "without lines": ({"line_start": None, "line_end": None}, None),
        "no hash": ({"text_sha256": None}, "text sha256 is not missing"),
        "no ordinal": ({"ordinal": None}, "ordinal is not missing"),
    }
    parts = [together(chunk_columns(case, **faults) for case, (faults, _) in cases.items())]
    outcome = validate("chunks", build_chunk_rules(), parts, NAMING, tmp_path / "docs")
    assert outcome.rows == 3 * len(cases)
    assert broken_by_case(outcome) == {case: {says} for case, (_, says) in cases.items() if says}


@pytest.mark.slow
def test_each_rule_for_vectors_fails_on_its_own_fault_alone(tmp_path: Path) -> None:
    cases: dict[str, tuple[dict[str, Any], str | None]] = {
        "healthy": ({}, None),
        "two vectors": ({"text_sha256": sha256_hex("two vectors 0")}, "a text has one vector"),
        "other hash": ({"text_sha256": "md5"}, "the key is a SHA-256"),
        "too short": ({"vector_bytes": 8}, "a vector has 3 float32 values"),
        "no vector": ({"vector_bytes": None}, "vector bytes is not missing"),
        "no time": ({"created_at": None}, "created at is not missing"),
        "no key": ({"text_sha256": None}, "text sha256 is not missing"),
    }
    parts = [together(vector_columns(case, **faults) for case, (faults, _) in cases.items())]
    naming = ("document", "text_sha256")
    outcome = validate("embeddings", build_vector_rules(3), parts, naming, tmp_path / "docs")
    assert broken_by_case(outcome) == {case: {says} for case, (_, says) in cases.items() if says}


def together(many: Iterable[Columns]) -> Columns:
    columns: dict[str, list[Any]] = {}
    for part in many:
        for name, values in part.items():
            columns.setdefault(name, []).extend(values)
    return columns


@pytest.mark.slow
def test_parts_are_counted_together_and_docs_replaced(tmp_path: Path) -> None:
    docs = tmp_path / "new tenant" / "chunks"
    rules = build_chunk_rules()
    parts = (chunk_columns(size=n) for n in (500, 600))
    outcome = validate("chunks", rules, parts, NAMING, docs)
    assert (outcome.rows, len(outcome.broken)) == (6, 2)
    validate("chunks", rules, [], NAMING, docs)
    assert [path.name for path in docs.parent.iterdir()] == ["chunks"]
    assert (docs / "index.html").is_file()


@pytest.mark.slow
def test_the_pages_fetch_nothing_from_elsewhere(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    validate("chunks", build_chunk_rules(), [chunk_columns(size=900)], NAMING, docs)
    pages = "".join(page.read_text() for page in docs.rglob("*.html"))
    assert "files/a.md" in pages
    fetched = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=[\"']?(\S+)", pages)
    assert not [url for url in fetched if urllib.parse.urlsplit(url).netloc]


@pytest.mark.slow
def test_page_templates_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    validate("chunks", build_chunk_rules(), [chunk_columns()], NAMING, tmp_path / "first")

    def refuse(*_: object) -> NoReturn:
        raise AssertionError("a template was compiled again")

    monkeypatch.setattr(jinja2.Environment, "compile", refuse)
    validate("chunks", build_chunk_rules(), [chunk_columns()], NAMING, tmp_path / "second")

    def read_pages(name: str) -> list[str]:
        pages = [page.read_text() for page in (tmp_path / name).rglob("*.html")]
        return sorted(re.sub(r"[0-9a-f.:+-]{2,}", "#", page) for page in pages)  # times, random ids

    first, second = read_pages("first"), read_pages("second")
    assert first == second
    assert first


def test_chunk_rows_hold_facts_and_no_text() -> None:
    text = "Nobody may read this."
    hashed = compute_text_hash("Title", ("A",), text)
    made = Chunk(0, text, 3, 24, 3, ("A",), 6, hashed, lines(1, 2))
    stored = build_chunk_sets_frame([ChunkSetRow("k", "d", (made,))])
    user = ChunkUser("files/a.md", "Title", parameters_of("heading", 64, 8))
    [row] = iter_chunk_rows(stored, {"k": user})
    facts = ("files/a.md", "k", 1, 0, 3, 24, 1, 2, 6)
    assert row == (*facts, 6, 64, len(text), hashed, hashed)
    [other] = iter_chunk_rows(stored, {"k": replace(user, title="Another")})
    assert other[-1] != hashed
    by_sentence = replace(user, parameters=parameters_of("sentence", 100, 0))
    [characters] = iter_chunk_rows(stored, {"k": by_sentence})
    assert characters == (*facts, len(text), 100, len(text), hashed, hashed)


def test_rows_that_a_crash_wrote_twice_count_once() -> None:
    made = Chunk(0, "text", 0, 4, 0, (), 1, compute_text_hash(None, (), "text"), lines(1, 1))
    user = ChunkUser("a", None, build_chunk_parameters("heading"))
    later = ChunkSetRow("k", "d", (made,), created_at=NOW)
    stored = pl.concat(
        [build_chunk_sets_frame([ChunkSetRow("k", "d", (made,))]), build_chunk_sets_frame([later])]
    )
    assert len(list(iter_chunk_rows(stored, {"k": user}))) == 1
    texts, stored_vectors = ["t", "t", "u", "u"], [b"1234", b"1234", b"1234", b"5678"]
    columns = zip(EMBEDDINGS, [texts, stored_vectors, [NOW] * 4, [None] * 4], strict=True)
    vectors = pl.DataFrame(dict(columns), schema=EMBEDDINGS)
    keys = [row[1] for row in iter_vector_rows(vectors, {"t": "a", "u": "b"})]
    assert keys == ["t", "u", "u"]


@pytest.mark.slow
def test_a_verdict_links_the_docs_and_names_the_broken_rule(tmp_path: Path) -> None:
    rules = build_chunk_rules()
    docs = tmp_path / "docs"
    outcome = validate("chunks", rules, [chunk_columns(size=900)], NAMING, docs)
    verdict = build_verdict(outcome, len(rules), docs)
    assert not verdict.passed
    assert verdict.compared[0].expected == len(rules)
    assert verdict.compared[0].actual == len(rules) - 1
    says = "a chunk is within the limit of its chunker"
    assert verdict.offenders == ((says, "files/a.md", "1"),)
    assert verdict.notes["data docs"] == f"/data-docs/{docs.parent.name}/{docs.name}/index.html"
    assert build_verdict(Validation(3, ()), len(rules), docs).passed
