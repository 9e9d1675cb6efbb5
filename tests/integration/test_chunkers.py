"""Rules about chunkers through the chain: what is cut how, what a change of them costs."""

from __future__ import annotations

from typing import Any

from rag_assets.ingest.chunking.model import Chunk
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.preview import preview
from rag_assets.pipeline.slices import parsed_documents
from rag_assets.pipeline.upkeep import compact
from tests.driving import Driver
from tests.installation import FAST, Installation

TENANT = "rules"
PROSE = "Line {0} of the log says what happened, and {0} what came of it.\n"


def rules(max_characters: int) -> list[dict[str, Any]]:
    return [{"sources": ["logs"], "chunker": "sentence", "max_characters": max_characters}]


def chunks_by_uri(ctx: TenantContext) -> dict[str, tuple[Chunk, ...]]:
    documents = parsed_documents(ctx, ctx.catalog.documents.all(ctx.ref.id))
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
        expected = preview(ctx)
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
        compact(ctx)
    differing = {uri for uri in made if made[uri] != changed[uri]}
    assert differing == {"logs/table.csv", "logs/prose.md"}
    assert again["chunks"] == sum(len(changed[uri]) for uri in differing)
    with driver.locked(TENANT) as ctx:
        assert chunks_by_uri(ctx) == changed
