"""Rules for chunkers in the chain: how documents are split, and what a change costs."""

from __future__ import annotations

from typing import Any

import pytest

from rag_assets.ingest.chunking import chunk_set
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.pipeline import recipes
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.preview import preview_sync
from rag_assets.pipeline.slices import find_parsed_documents
from rag_assets.pipeline.upkeep import compact_lake
from tests.driving import Driver
from tests.installation import FAST, Installation

TENANT = "rules"
PROSE = "Line {0} of the log says what happened, and {0} what came of it.\n"


def rules(max_characters: int) -> list[dict[str, Any]]:
    return [{"sources": ["logs"], "chunker": "sentence", "max_characters": max_characters}]


def chunks_by_uri(ctx: TenantContext) -> dict[str, tuple[Chunk, ...]]:
    documents = find_parsed_documents(ctx, ctx.catalog.documents.all(ctx.ref.id))
    sets = ctx.lake.chunk_sets({item.chunk_set_key for item in documents})
    return {item.document.uri: sets[item.chunk_set_key].chunks for item in documents}


def test_each_document_is_cut_by_the_rule_that_is_for_it(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.home.parent / "sources" / TENANT
    for source in ("notes", "logs"):
        (folder / source).mkdir(parents=True)
        table = [f"service {n} of {source},{8000 + n}\n" for n in range(20)]
        (folder / source / "table.csv").write_text("".join(["name,port\n", *table]))
        (folder / source / "prose.md").write_text("".join(PROSE.format(n) for n in range(20)))
    sources = [
        {"name": name, "root": str(folder / name), "include": ["*.md", "*.csv"]}
        for name in ("notes", "logs")
    ]
    shared_installation.add_tenant(TENANT, **FAST, sources=sources, chunkers=rules(100))
    with driver.locked(TENANT) as ctx:
        expected = preview_sync(ctx)
    done = driver.sync(TENANT)
    with driver.locked(TENANT) as ctx:
        made = chunks_by_uri(ctx)
    assert done["chunks"] == sum(map(len, made.values()))
    assert (expected.chunks, expected.embeddings) == (done["chunks"], done["embedded"])
    rows = made["notes/table.csv"]
    assert [chunk.location.row_end for chunk in rows] == list(range(2, 22))
    assert {chunk.heading_path for chunk in rows} == {("name | port",)}
    assert len(made["notes/prose.md"]) < 4
    for name in ("logs/table.csv", "logs/prose.md"):
        assert max(len(chunk.text) for chunk in made[name]) <= 100 < 2 * len(made[name][0].text)

    shared_installation.configure(TENANT, chunkers=rules(150))
    again = driver.sync(TENANT)
    with driver.locked(TENANT) as ctx:
        changed = chunks_by_uri(ctx)
        compact_lake(ctx)
    differing = {uri for uri in made if made[uri] != changed[uri]}
    assert differing == {"logs/table.csv", "logs/prose.md"}
    assert again["chunks"] == sum(len(changed[uri]) for uri in differing)
    with driver.locked(TENANT) as ctx:
        assert chunks_by_uri(ctx) == changed


def test_rows_far_below_the_header_of_a_table_are_found_and_shown_with_it(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant, header = "tables", "| Valve | Torque | Cabinet |"
    folder = shared_installation.home.parent / "sources" / tenant
    folder.mkdir(parents=True)
    rows = [f"| V-{n:03} | {n % 7} | left wing, door {n} |" for n in range(120)]
    (folder / "valves.md").write_text("\n".join([header, "|---|---|---|", *rows, ""]))
    sources = [{"name": "files", "root": str(folder)}]
    shared_installation.add_tenant(
        tenant, **FAST, sources=sources, chunker={"chunker": "heading", "max_tokens": 200}
    )
    first = driver.sync(tenant)
    for mode in ("text", "hybrid"):
        for hit in shared_installation.search(tenant, "torque V-101", mode=mode, top_k=3):
            assert "Torque" in hit.text_in_context
    best, *_ = shared_installation.search(tenant, "torque of V-101", mode="text")
    assert best.text.startswith("| V-")
    assert best.context == header
    assert any(line.startswith("| V-101 |") for line in best.text.splitlines())
    ctx = shared_installation.context(tenant)
    serving = ctx.catalog.generations.serving(tenant)
    assert serving is not None
    entries = ctx.store.entries
    holding = entries.containing(serving.index_name, tenant, "Valve | Torque | Cabinet")
    assert len(holding) == first["chunks"]
    assert all(entry.intact for entry in entries.stored(serving.index_name, ctx.owner(serving)))


def test_a_new_version_of_the_chunker_embeds_nothing_that_is_cut_as_before(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = "versions"
    folder = shared_installation.home.parent / "sources" / tenant
    folder.mkdir(parents=True)
    (folder / "prose.md").write_text("".join(PROSE.format(n) for n in range(40)))
    shared_installation.add_tenant(tenant, **FAST, sources=[{"name": "files", "root": str(folder)}])
    driver.sync(tenant)
    before = shared_installation.entries(tenant)
    for module in (recipes, chunk_set):
        monkeypatch.setattr(module, "CHUNKER_VERSION", CHUNKER_VERSION + 1)
    again = driver.sync(tenant)
    assert (again["parsed"], again["embedded"]) == (0, 0)
    assert again["chunks"] == len(before)
    assert sorted(shared_installation.entries(tenant).values()) == sorted(before.values())
