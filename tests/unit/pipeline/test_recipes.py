import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_assets.common.errors import BuildNotWritable
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION, DROPPING_VERSION
from rag_assets.ingest.parsing.languages import get_detector_version
from rag_assets.ingest.parsing.registry import compute_parsers_version
from rag_assets.models.factory import get_embedder_id
from rag_assets.pipeline.recipes import (
    Recipe,
    compute_config_key,
    compute_generation_key,
    configure_tenant_for_build,
    find_configured_build,
)
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.index.model import SCHEMA_VERSION, VectorIndex
from rag_assets.storage.index.terms import TERMS_VERSION
from rag_assets.tenants.model import Tenant


def keys(**config: Any) -> tuple[str, str]:
    tenant = Tenant.from_config({"id": "a", **config})
    key = compute_generation_key(tenant, "embedder", "int8_hnsw")
    return key, compute_config_key(tenant, "embedder")


def generation(number: int, kind: VectorIndex, **changes: Any) -> Generation:
    key = compute_generation_key(Tenant.from_config({"id": "a"}), "embedder", kind)
    values: dict[str, Any] = {
        "number": number, "key": key, "index_name": "index", "index_identity": "1",
        "embedder_id": "embedder", "embedder": {}, "dimensions": 384, "state": "SERVING",
        "created_at": datetime(2026, 11, 22, tzinfo=UTC), "retired_at": None,
    }  # fmt: skip
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
    key = compute_key("generation", *parts)
    assert compute_generation_key(tenant, "embedder", "int8_hnsw") == key
    # It was made when int8_hnsw was the default, and is kept now that the kind is left open.
    made = generation(1, "bbq_hnsw", key=key)
    assert find_configured_build([made], tenant, "embedder") == made
    assert compute_config_key(tenant, "embedder") == compute_key(
        "config", key, compute_parsers_version(), get_detector_version(), DROPPING_VERSION,
        TERMS_VERSION, tenant.parser.model_dump(mode="json"), tenant.parser.options.identity(),
    )  # fmt: skip


def test_a_kind_that_is_left_open_is_that_of_the_newest_build() -> None:
    builds = [generation(1, "int8_hnsw", state="RETIRED"), generation(2, "bbq_hnsw")]
    left_open = Tenant.from_config({"id": "a"})
    assert find_configured_build(builds, left_open, "embedder") == builds[1]
    assert find_configured_build(builds[:1], left_open, "embedder") == builds[0]
    assert find_configured_build(builds, left_open, "another") is None
    removing = replace(builds[1], state="REMOVING")
    assert find_configured_build([removing], left_open, "embedder") is None


@pytest.mark.parametrize(("kind", "number"), [("int8_hnsw", 1), ("bbq_hnsw", 2), ("hnsw", None)])
def test_a_kind_that_is_chosen_is_a_build_of_its_own(kind: str, number: int | None) -> None:
    builds = [generation(1, "int8_hnsw"), generation(2, "bbq_hnsw")]
    tenant = Tenant.from_config({"id": "a", "index": {"vector_index": kind}})
    found = find_configured_build(builds, tenant, "embedder")
    assert (found and found.number) == number


def test_another_password_retries_failed_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = Tenant.from_config({"id": "a", "parser": {"passwords": ["$NAME"]}})
    keys = set()
    for value in ("one", "two", "one"):
        monkeypatch.setenv("NAME", value)
        keys.add(compute_config_key(tenant, "embedder"))
    assert len(keys) == 2


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"chunker": {"chunker": "recursive", "max_tokens": 100}},
        {"chunker": {"chunker": "sentence", "max_characters": 500, "overlap": 10}},
        {"chunkers": [{"formats": ["csv", "code"], "chunker": "record"}]},
        {"chunkers": [{"sources": ["gone"], "source_types": ["file"], "chunker": "heading"}]},
        {"index": {"placement": "dedicated", "vector_index": "hnsw"}},
    ],
)
def test_a_recipe_leads_to_its_build_from_any_other_configuration(config: dict[str, Any]) -> None:
    made = Tenant.model_validate({"id": "a", **config})
    kind = "bbq_hnsw" if made.index.vector_index == "auto" else made.index.vector_index
    recipe = Recipe.from_row(json.loads(json.dumps(Recipe.from_tenant(made, kind).as_row())))
    assert recipe == Recipe.from_tenant(made, kind)
    now = Tenant.model_validate({"id": "a", "chunker": {"max_tokens": 64, "overlap": 0}})
    again = recipe.configure_tenant(now)
    key = compute_generation_key(made, "embedder", kind)
    assert compute_generation_key(again, "embedder", kind) == key
    assert compute_config_key(again, "embedder") == compute_config_key(made, "embedder")


def test_a_build_is_made_with_its_own_embedder_or_the_present_limits_of_the_same() -> None:
    other = {"provider": "deterministic", "dimensions": 64, "seconds_per_text": 0.5}
    made = Tenant.model_validate({"id": "a", "embedder": other})
    id_ = get_embedder_id(made.embedder)
    opened = build(made, id_)
    local = Tenant.model_validate({"id": "a"})
    assert configure_tenant_for_build(local, "local", opened).embedder == made.embedder
    quick = Tenant.model_validate({"id": "a", "embedder": {**other, "seconds_per_text": 0.0}})
    assert configure_tenant_for_build(quick, id_, opened).embedder == quick.embedder


def test_a_build_that_cannot_be_made_any_more_says_why() -> None:
    tenant = Tenant.model_validate({"id": "a", "embedder": {"provider": "deterministic"}})
    opened = build(tenant, get_embedder_id(tenant.embedder))
    recipe = dict(opened.recipe or {})
    other = {"provider": "deterministic", "dimensions": 9}
    reasons = {
        "did not record its chunker": replace(opened, recipe=None),
        "a different version": replace(opened, recipe={**recipe, "chunker": {"chunker": "gone"}}),
        "of the index's schema": replace(opened, key="of schema 4"),
        "no longer available": replace(opened, embedder=other),
    }
    for reason, generation_ in reasons.items():
        with pytest.raises(BuildNotWritable, match=reason):
            configure_tenant_for_build(tenant, "another", generation_)


def build(tenant: Tenant, embedder_id: str) -> Generation:
    """Return a build with this configuration."""
    return generation(
        1, "int8_hnsw", key=compute_generation_key(tenant, embedder_id, "int8_hnsw"),
        embedder_id=embedder_id,
        embedder=tenant.embedder.model_dump(mode="json", exclude_none=True),
        recipe=Recipe.from_tenant(tenant, "int8_hnsw").as_row(),
    )  # fmt: skip
