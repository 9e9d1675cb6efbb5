import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_assets.common.elasticsearch_settings import IndexLayout
from rag_assets.ingest.chunking.model import Chunk, parse_chunk
from rag_assets.storage.index.elasticsearch.mapping import (
    IndexNames,
    build_index_body,
    build_index_settings,
    build_owner_clauses,
    compute_flat_index_threshold,
    fits,
)
from rag_assets.storage.index.elasticsearch.queries import parse_scanned_hit
from rag_assets.storage.index.fields import build_entry_source, is_intact
from rag_assets.storage.index.model import (
    Entry,
    EntryDocument,
    IndexSpec,
    Owner,
    choose_vector_index,
    entry_id,
    indexed_key,
)

OWNER = Owner("acme", 7, 2)
MADE = datetime(2026, 11, 21, 14, 35, 0, 123_000, UTC)
DOCUMENT = EntryDocument(
    document_id="d" * 32, indexed_key="k" * 32, source="files", source_type="file", path="guide.md",
    uri="files/guide.md", media_type="text/markdown", title="Guide", access_scope="public",
    modified_at=MADE, language="en",
)  # fmt: skip


def chunk(**changes: Any) -> Chunk:
    values: dict[str, Any] = {
        "ordinal": 0, "text": "Turn the wheel.", "start": 3, "end": 18, "byte_start": 4,
        "line_start": 1, "line_end": 2, "heading_path": ("Guide", "Wheels"), "token_count": 4,
        "text_sha256": "a" * 64,
    }  # fmt: skip
    return parse_chunk({**values, **changes})


def entry(**changes: Any) -> Entry:
    return Entry(OWNER, DOCUMENT, chunk(**changes), np.ones(4, dtype=np.float32))


def test_every_stored_field_is_in_the_mapping() -> None:
    mapped = build_index_body(IndexSpec(4))["mappings"]["properties"]
    of_block = {"blocks": [{"block_id": "b", "start": 0}], "of_block": True}
    place = {"page": 3, "slide": 3, "sheet": "S", "row_start": 1, "row_end": 2}
    made = entry(**place, **of_block, context="| a | b |")
    placed = replace(DOCUMENT, source_id="4711", page_uuid="4711")
    stored = build_entry_source(replace(made, document=placed, within=(0,)))
    assert stored.keys() | {"vector"} == mapped.keys()
    assert build_index_body(IndexSpec(4))["mappings"]["dynamic"] == "strict"


def test_an_entry_has_a_readable_chunk_id() -> None:
    stored = build_entry_source(entry())
    assert stored["chunk_id"] == "acme:guide.md:4"
    assert "page" not in stored
    assert stored["terms"].split()[1:3] == ["guid", "guid"]  # the title, then the headings


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The pump of the harbour is repaired by two men from Athens on Monday. "),
        ("el", "Η αντλία του λιμανιού επισκευάζεται από δύο άνδρες από την Αθήνα τη Δευτέρα. "),
        ("hi", "बंदरगाह के पंप की मरम्मत सोमवार को एथेंस के दो लोग करते हैं। "),
    ],
)
def test_an_entry_of_350_terms_counts_half_in_any_language(language: str, text: str) -> None:
    document = replace(DOCUMENT, language=language, title=None)
    stored = build_entry_source(replace(entry(text=text * 60, heading_path=()), document=document))
    terms = len(stored["terms"].split()) - 1
    assert terms > 350
    assert stored["length_weight"] == pytest.approx(0.5 ** (terms / 350), rel=1e-5)
    assert 0.15 < stored["length_weight"] < 0.5, "however many tokens a model sees in it"


def test_modified_at_is_stored_in_utc() -> None:
    made = MADE.astimezone(timezone(timedelta(hours=-9)))
    dated = replace(DOCUMENT, modified_at=made, language=None)
    stored = build_entry_source(replace(entry(), document=dated))
    assert stored["modified_at"] == "2026-11-21T14:35:00.123Z"
    assert "language" not in stored


@pytest.mark.parametrize("key", [None, b"k" * 32], ids=["former schema", "with a key"])
def test_the_digest_detects_any_change_of_a_stored_field(key: bytes | None) -> None:
    stored = build_entry_source(replace(entry(page=3), owner=replace(OWNER, digest_key=key)))
    assert is_intact(stored, key)
    assert is_intact({**stored, "vector": [1.0]}, key)
    assert not is_intact(stored, b"another key")
    for name in stored:
        assert not is_intact({**stored, name: "other"}, key), name
        without = {k: v for k, v in stored.items() if k != name}
        # Hits are read without `terms`; an entry found by a scan must have them.
        assert is_intact(without, key) == (name == "terms" and key is not None), name
    for name, lost in (("terms", None), ("digest", 3), ("digest", None)):
        fields = {k: v for k, v in stored.items() if k != name}
        fields |= {} if lost is None else {name: lost}
        assert not parse_scanned_hit({"_id": "e", "_source": fields}, key).intact, name


def test_digests_with_different_keys_differ() -> None:
    owners = [replace(OWNER, digest_key=key) for key in (None, b"k" * 32, b"l" * 32)]
    digests = {build_entry_source(replace(entry(), owner=owner))["digest"] for owner in owners}
    assert len(digests) == 3


def test_an_entry_id_depends_on_everything_that_distinguishes_entries() -> None:
    owners = [OWNER, Owner("b", 7, 2), Owner("acme", 8, 2), Owner("acme", 7, 3)]
    ids = {entry_id(owner, "d", "k", 0) for owner in owners}
    ids |= {entry_id(OWNER, *other) for other in (("d", "k", 1), ("d", "z", 0), ("z", "k", 0))}
    assert len(ids) == 7


def test_an_index_key_depends_on_everything_in_an_entry() -> None:
    same: dict[str, Any] = {
        "title": "t", "uri": "u", "media_type": "m", "language": None, "modified_at": MADE,
        "access_scope": "s", "tags": (), "metadata": {},
    }  # fmt: skip
    changes: list[dict[str, Any]] = [
        {}, {"title": None}, {"uri": "v"}, {"media_type": "n"}, {"language": "en"},
        {"modified_at": MADE + timedelta(milliseconds=1)}, {"access_scope": "p"}, {"tags": ("x",)},
        {"metadata": {"a": 1}},
    ]  # fmt: skip
    keys = {indexed_key("digest", "embedder", **{**same, **change}) for change in changes}
    keys |= {indexed_key("other", "embedder", **same), indexed_key("digest", "other", **same)}
    assert len(keys) == len(changes) + 2


@pytest.mark.parametrize("kind", ["int8_hnsw", "hnsw", "bbq_hnsw"])
def test_an_index_fits_only_its_own_spec(kind: Any) -> None:
    spec = IndexSpec(64, kind)
    live = build_index_body(spec)["mappings"]
    assert fits(live, spec)
    live["properties"]["more"] = {"type": "keyword"}
    assert fits(live, spec)
    assert not fits(live, replace(spec, dimensions=65))
    other: Any = "hnsw" if kind != "hnsw" else "int8_hnsw"
    assert not fits(live, replace(spec, vector_index=other))
    live["properties"]["tenant"] = {"type": "text"}
    assert not fits(live, spec)
    assert not fits({}, spec)


def test_a_dedicated_index_belongs_to_one_tenant() -> None:
    names = IndexNames("rag")
    for spec in (IndexSpec(384), IndexSpec(64, "hnsw"), IndexSpec(64, "bbq_hnsw")):
        own = names.dedicated(spec, "b-a")
        assert names.is_dedicated(own, "b-a")
        assert not names.is_dedicated(own, "a")
        assert not names.is_dedicated(own, "hnsw-b-a")
        assert not IndexNames("other").is_dedicated(own, "b-a")
    assert not names.is_dedicated(names.shared_stem(IndexSpec(384)) + "1", "1")


def test_names_of_different_specs_differ() -> None:
    names = IndexNames("rag")
    kinds: tuple[Any, ...] = ("int8_hnsw", "hnsw", "bbq_hnsw")
    specs = [IndexSpec(dims, kind) for dims in (64, 384) for kind in kinds]
    assert len({names.shared_stem(spec) for spec in specs}) == len(specs)
    assert len({names.dedicated(spec, "a") for spec in specs}) == len(specs)


def test_owner_clauses_filter_tenant_incarnation_and_generation() -> None:
    terms = [{"tenant": "acme"}, {"incarnation": 7}, {"generation": 2}]
    assert build_owner_clauses(OWNER) == [{"term": term} for term in terms]


@pytest.mark.parametrize(
    ("dimensions", "kind", "vectors"),
    [
        (384, "int8_hnsw", 20_833),
        (3072, "hnsw", 2_604),
        (384, "bbq_hnsw", 166_667),
        (3072, "bbq_hnsw", 20_833),
    ],
)
def test_the_flat_threshold_is_a_vector_count(dimensions: int, kind: Any, vectors: int) -> None:
    spec = IndexSpec(dimensions, kind)
    threshold = compute_flat_index_threshold(spec)
    options = build_index_body(spec)["mappings"]["properties"]["vector"]["index_options"]
    assert options["flat_index_threshold"] == threshold
    assert 0.9 * vectors < threshold * log(vectors) < 1.1 * vectors


def test_the_tutorial_deletes_an_existing_index() -> None:
    tutorial = Path(__file__).parents[5] / "docs" / "tutorial.md"
    index = f"{IndexNames().shared_stem(IndexSpec(384, choose_vector_index(384)))}1"
    assert re.search(rf"-X DELETE http://127\.0\.0\.1:PORT/{index}\s", tutorial.read_text())


@pytest.mark.parametrize(
    ("interval", "sent"),
    [("500ms", "5s"), ("4s", "5s"), ("5s", "5s"), ("6000ms", "6000ms"), ("1m", "1m"), ("-1", "-1")],
)
def test_serverless_gets_no_refresh_interval_that_it_refuses(interval: str, sent: str) -> None:
    layout = IndexLayout(refresh_interval=interval)
    assert build_index_settings(layout, is_serverless=True) == {"refresh_interval": sent}
    assert build_index_settings(layout)["refresh_interval"] == interval
