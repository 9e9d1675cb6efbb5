from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_assets.common.hashing import key_of
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION
from rag_assets.ingest.parsing.languages import detector_version
from rag_assets.ingest.parsing.registry import parsers_version
from rag_assets.pipeline.context import build_of, config_key, generation_key
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.index.model import SCHEMA_VERSION, VectorIndex
from rag_assets.tenants.model import Tenant


def keys(**config: Any) -> tuple[str, str]:
    tenant = Tenant.from_config({"id": "a", **config})
    return generation_key(tenant, "embedder", "int8_hnsw"), config_key(tenant, "embedder")


def generation(number: int, kind: VectorIndex, **changes: Any) -> Generation:
    key = generation_key(Tenant.from_config({"id": "a"}), "embedder", kind)
    values: dict[str, Any] = {
        "number": number,
        "key": key,
        "index_name": "index",
        "index_identity": "1",
        "embedder_id": "embedder",
        "embedder": {},
        "dimensions": 384,
        "state": "SERVING",
        "created_at": datetime(2026, 11, 22, tzinfo=UTC),
        "retired_at": None,
    }
    return Generation(**{**values, **changes})


def test_every_way_to_cut_is_a_generation_of_its_own() -> None:
    rule = {"formats": ["csv"], "chunker": "record"}
    other = {"formats": ["xlsx"], "chunker": "heading", "max_tokens": 100}
    source = [{"name": "files", "root": "/tmp"}]
    ways: list[dict[str, Any]] = [
        {},
        {"chunker": {"chunker": "recursive", "max_tokens": 220, "overlap": 32}},
        {"chunker": {"chunker": "sentence", "max_characters": 220, "overlap": 32}},
        {"chunkers": [rule]},
        {"chunkers": [{**rule, "max_tokens": 100}]},
        {"chunkers": [{**rule, "source_types": ["file"]}]},
        {"chunkers": [{**rule, "sources": ["files"]}], "sources": source},
        {"chunkers": [rule, other]},
        {"chunkers": [other, rule]},
    ]
    assert len({keys(**way)[0] for way in ways}) == len(ways)
    assert len({keys(**way)[1] for way in ways}) == len(ways)


def test_two_ways_to_say_the_same_are_one_generation() -> None:
    default = keys()
    assert keys(chunkers=[]) == default
    assert keys(chunker={"chunker": "heading", "max_tokens": 220, "overlap": 32}) == default
    suffix, media_type = (
        keys(chunkers=[{"formats": [name], "chunker": "record"}]) for name in ("csv", "text/csv")
    )
    assert suffix == media_type
    said = keys(chunker={"chunker": "recursive", "max_tokens": 512, "overlap": 64})
    assert keys(chunker={"chunker": "recursive"}) == said


def test_a_tenant_without_rules_keeps_the_generation_it_has() -> None:
    tenant = Tenant.model_validate({"id": "a", "chunker": {"max_tokens": 220, "overlap": 32}})
    placed = ("int8_hnsw", "shared")
    parts = ("embedder", CHUNKER_VERSION, "heading", 220, 32, SCHEMA_VERSION, *placed)
    key = key_of("generation", *parts)
    assert generation_key(tenant, "embedder", "int8_hnsw") == key
    # It was made when int8_hnsw was the default, and is kept now that the kind is left open.
    made = generation(1, "bbq_hnsw", key=key)
    assert build_of([made], tenant, "embedder") == made
    assert config_key(tenant, "embedder") == key_of(
        "config",
        key,
        parsers_version(),
        detector_version(),
        tenant.parser.model_dump(mode="json"),
        tenant.parser.options.identity(),
    )


def test_a_kind_that_is_left_open_is_that_of_the_newest_build() -> None:
    builds = [generation(1, "int8_hnsw", state="RETIRED"), generation(2, "bbq_hnsw")]
    left_open = Tenant.from_config({"id": "a"})
    assert build_of(builds, left_open, "embedder") == builds[1]
    assert build_of(builds[:1], left_open, "embedder") == builds[0]
    assert build_of(builds, left_open, "another") is None
    assert build_of([replace(builds[1], state="REMOVING")], left_open, "embedder") is None


@pytest.mark.parametrize(("kind", "number"), [("int8_hnsw", 1), ("bbq_hnsw", 2), ("hnsw", None)])
def test_a_kind_that_is_chosen_is_a_build_of_its_own(kind: str, number: int | None) -> None:
    builds = [generation(1, "int8_hnsw"), generation(2, "bbq_hnsw")]
    tenant = Tenant.from_config({"id": "a", "index": {"vector_index": kind}})
    found = build_of(builds, tenant, "embedder")
    assert (found and found.number) == number


def test_another_password_lets_failed_documents_be_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant = Tenant.from_config({"id": "a", "parser": {"passwords": ["$NAME"]}})
    keys = set()
    for value in ("one", "two", "one"):
        monkeypatch.setenv("NAME", value)
        keys.add(config_key(tenant, "embedder"))
    assert len(keys) == 2
