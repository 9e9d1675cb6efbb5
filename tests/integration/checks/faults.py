"""A synced tenant, ways to damage its stored data, and the verdicts of its checks."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from deltalake import DeltaTable
from elasticsearch import Elasticsearch

from rag_assets.cli.runs import CheckResult, Runner
from rag_assets.ingest.chunking.model import Chunk, compute_text_hash
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import ParsedDocument, find_parsed_documents
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.index.elasticsearch.mapping import build_index_body
from rag_assets.storage.index.model import Owner
from rag_assets.storage.lake.rows import EMBEDDINGS
from tests.installation import Installation

DOCUMENTS = {
    "rollback.md": "# Rollbacks\n\nRoll back with the previous tag.\n\n## Afterwards\n\n"
    + "Write down what happened within a day, and who was told about it. " * 40,
    "oncall.md": "# On call\n\nThe one on call answers within ten minutes.\n",
    "leave.md": "# Leave\n\nSay so a week ahead, in the calendar.\n",
}
ALL = {
    "raw_documents.catalog",
    "raw_documents.clock",
    "raw_documents.contents",
    "raw_documents.deletions",
    "raw_documents.stored",
    "raw_documents.programs",
    "raw_documents.ticks",
    "embeddings.lake",
    "chunks.secrets",
    "chunks.expectations",
    "embeddings.dimensions",
    "embeddings.canary",
    "embeddings.languages",
    "embeddings.spending",
    "embeddings.expectations",
    "retrieval_quality.retrieval_quality",
    "search_index.dimensions",
    "search_index.disk",
    "search_index.quarantine",
    "search_index.relations",
    "search_index.vectors_beside",
    "search_index.staleness",
    "search_index.thresholds",
    "search_index.drift",
    "search_index.isolation",
}

EXPECTATIONS = {"chunks.expectations", "embeddings.expectations"}


@dataclass
class Outcome:
    """The results of a tenant's checks, by asset and check."""

    checks: Mapping[str, CheckResult]

    @property
    def failing(self) -> set[str]:
        return {name for name, check in self.checks.items() if not check.passed}

    def compared(self, name: str) -> dict[str, tuple[str, str]]:
        """Return expected and actual values, by what was compared."""
        rows = _rows(self.checks[name], "expected and actual")
        return {row["what"]: (row["expected"], row["actual"]) for row in rows}

    def offenders(self, name: str) -> list[dict[str, Any]]:
        return _rows(self.checks[name], "first offenders")


class CheckedTenant:
    """A synced tenant with access to its stores."""

    def __init__(self, installation: Installation, runner: Runner, name: str, folder: Path) -> None:
        self.installation = installation
        self._runner = runner
        self.name = name
        self.folder = folder
        self.ctx: TenantContext = installation.context(name)
        serving = self.ctx.catalog.generations.serving(name)
        assert serving is not None
        self.generation: Generation = serving
        self.owner: Owner = self.ctx.owner(serving)

    def check(self, *, tables: bool = True) -> Outcome:
        """Run every check of the tenant, as `rag-assets check` does.

        Args:
            tables: whether to run the expectations too, which read only tables of the lake.
        """
        return self.run(*(("check_tenant", "expectations") if tables else ("check_tenant",)))

    def run(self, *jobs: str) -> Outcome:
        """Run jobs; return the results of their checks."""
        checks: dict[str, CheckResult] = {}
        for job_name in jobs:
            run = self._runner.run(job_name, self.name)
            assert run.failure is None, run.failure
            checks |= {f"{check.asset}.{check.check}": check for check in run.checks}
        lacking = set() if "check_tenant" not in jobs or len(jobs) > 1 else EXPECTATIONS
        assert set(checks) == ALL - lacking
        return Outcome(checks)

    def document(self, file_name: str) -> Document:
        found = {d.uri: d for d in self.ctx.catalog.documents.all(self.name, deleted=True)}
        return found[f"files/{file_name}"]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Restore the lake and the index at the end of the block."""
        lake = Path(self.ctx.lake._location.url)
        kept = lake.with_name(f"{lake.name}-kept")
        shutil.copytree(lake, kept)
        entries = {name: self.entries(name) for name in DOCUMENTS}
        try:
            yield
        finally:
            shutil.rmtree(lake)
            kept.rename(lake)
            self._restore_index({k: v for of in entries.values() for k, v in of.items()})

    def _restore_index(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        name = self.generation.index_name
        self.elasticsearch.indices.delete(index=name, ignore_unavailable=True)
        spec = self.ctx.index_spec(self.generation)
        row = self.ctx.catalog.installation.read()
        meta = {"rag_assets": {"installation": str(row.id)}} if row else {}
        self.elasticsearch.indices.create(index=name, **build_index_body(spec, meta))
        for id_, fields in entries.items():
            self.write_entry(id_, fields)
        self.elasticsearch.indices.refresh(index=name)
        [made] = self.elasticsearch.indices.get_settings(index=name).values()
        uuid = made["settings"]["index"]["uuid"]
        self.ctx.catalog.generations.move(self.ctx.ref, self.generation, name, uuid)
        self.generation = replace(self.generation, index_identity=uuid)
        self.ctx.store.indexes.publish(name, self.owner)

    # -- the lake

    def parsed(self, file_name: str) -> ParsedDocument:
        return find_parsed_documents(self.ctx, [self.document(file_name)])[0]

    def change_chunks(self, file_name: str, change: Callable[[Chunk], Chunk]) -> None:
        """Change a document's stored chunks, with matching hashes."""
        item = self.parsed(file_name)
        key = item.chunk_set_key
        row = self.ctx.lake.chunk_sets({key})[key]
        changed = tuple(_rehashed(change(chunk), item.title) for chunk in row.chunks)
        _delete(self.ctx.lake._tables.chunks().location.url, f"key = '{key}'")
        self.ctx.lake.append_chunk_sets([replace(row, chunks=changed)])

    def change_vector(self, file_name: str, change: Callable[[np.ndarray], np.ndarray]) -> str:
        """Change the stored vector of a document's first chunk; return its key."""
        import polars as pl

        key = self.parsed(file_name).chunk_set_key
        text = self.ctx.lake.read_chunk_hashes({key})[key][0]
        embedder_id = self.ctx.embedder.embedder_id
        stored = self.ctx.lake.stored_vectors(embedder_id, {text})
        vector = np.frombuffer(stored["vector"][0], "<f4")
        changed = np.ascontiguousarray(change(vector), "<f4").tobytes()
        table = self.ctx.lake._tables.vectors(embedder_id)
        _delete(table.location.url, f"text_sha256 = '{text}'")
        row = {"text_sha256": [text], "vector": [changed], "created_at": stored["created_at"]}
        table.append(pl.DataFrame({**row, "checksum": [None]}, schema=EMBEDDINGS))
        return text

    # -- the index

    @property
    def elasticsearch(self) -> Elasticsearch:
        return self.ctx.store.entries._client  # type: ignore[attr-defined]

    def entries(self, file_name: str) -> dict[str, dict[str, Any]]:
        """Return the entries of a document with their vectors, by id."""
        answer = self.elasticsearch.search(
            index=self.generation.index_name,
            query={
                "bool": {
                    "filter": [
                        {"term": {"tenant": self.name}},
                        {"term": {"document_id": self.document(file_name).document_id}},
                    ]
                }
            },
            source_exclude_vectors=False,
            size=100,
        )
        return {hit["_id"]: hit["_source"] for hit in answer["hits"]["hits"]}

    def write_entry(
        self, entry_id: str, fields: Mapping[str, Any], routing: str | None = None
    ) -> None:
        self.elasticsearch.index(
            index=self.generation.index_name,
            id=entry_id,
            document=dict(fields),
            routing=routing or self.name,
        )

    def delete_entry(self, entry_id: str) -> None:
        self.elasticsearch.delete(index=self.generation.index_name, id=entry_id, routing=self.name)


def _rows(check: CheckResult, title: str) -> list[dict[str, Any]]:
    rows = check.metadata.get(title) or []
    assert isinstance(rows, list)
    return rows


def _rehashed(chunk: Chunk, title: str | None) -> Chunk:
    return replace(chunk, text_sha256=compute_text_hash(title, chunk.heading_path, chunk.text))


def _delete(url: str, predicate: str) -> None:
    deleted = DeltaTable(url).delete(predicate)
    assert deleted["num_deleted_rows"] == 1
