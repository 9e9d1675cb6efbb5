from __future__ import annotations

from typing import Any

import pytest

from rag_assets.common.hashing import key_of
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION
from rag_assets.pipeline.context import config_key, generation_key
from rag_assets.storage.index.model import SCHEMA_VERSION
from rag_assets.tenants.model import Tenant


def keys(**config: Any) -> tuple[str, str]:
    tenant = Tenant.from_config({"id": "a", **config})
    return generation_key(tenant, "embedder"), config_key(tenant, "embedder")


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
    assert generation_key(tenant, "embedder") == key_of("generation", *parts)


def test_another_password_lets_failed_documents_be_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tenant = Tenant.from_config({"id": "a", "parser": {"passwords": ["$NAME"]}})
    keys = set()
    for value in ("one", "two", "one"):
        monkeypatch.setenv("NAME", value)
        keys.add(config_key(tenant, "embedder"))
    assert len(keys) == 2
