"""Measure word search in several languages: XQuAD's questions, to its paragraphs in a real index.

    python -m benchmarks.languages FOLDER URL LANGUAGE...

FOLDER holds the files `xquad.LANGUAGE.json` (github.com/google-deepmind/xquad, CC BY-SA 4.0), URL
is the address of an Elasticsearch. With `+` between languages (`en+de`), their paragraphs are in
one tenant. Prints the nDCG@10 of two halves of up to 600 questions of each language.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import numpy as np

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.storage.index.model import Entry, EntryDocument, IndexSpec, Owner, RankingRequest
from rag_assets.storage.index.store import StoreConfig, VectorStore, open_store

_SPEC = IndexSpec(dimensions=4)
_QUESTIONS = 600
_HITS = 10


def main(folder: Path, url: str, tenants: Sequence[str]) -> None:
    """Measure each tenant, and remove its index."""
    store = open_store(StoreConfig(url, prefix=f"languages{uuid4().hex[:8]}"))
    try:
        index = store.indexes.place(_SPEC, "any", "shared")
        for tenant in tenants:
            owner = Owner(tenant.replace("+", "-"), 1, 1, b"k" * 32)
            languages = tenant.split("+")
            for language in languages:
                store.entries.write(index.name, _build_entries(folder, owner, language))
            for language in languages:
                halves = asyncio.run(_measure(store, index.name, owner, folder, language))
                print(tenant, language, *(f"{half:.3f}" for half in halves), flush=True)
    finally:
        for name in store.indexes.names():
            store.indexes.drop(name)
        store.close()


def _read_paragraphs(folder: Path, language: str) -> list[dict[str, object]]:
    content = json.loads((folder / f"xquad.{language}.json").read_text(encoding="utf-8"))
    return [paragraph for article in content["data"] for paragraph in article["paragraphs"]]


def _build_entries(folder: Path, owner: Owner, language: str) -> list[Entry]:
    entries = []
    for number, paragraph in enumerate(_read_paragraphs(folder, language)):
        name, text = f"{language}-{number}", str(paragraph["context"])
        document = EntryDocument(
            document_id=name,
            indexed_key="v1",
            source="files",
            source_type="file",
            path=name,
            uri=f"files/{name}",
            media_type="text/plain",
            title=None,
            language=language,
            modified_at=datetime(2026, 1, 1, tzinfo=UTC),
            access_scope="public",
        )
        chunk = Chunk(
            ordinal=0,
            text=text,
            text_sha256=name,
            start=0,
            end=len(text),
            byte_start=0,
            token_count=count_text(text),
            heading_path=(),
        )
        entries.append(Entry(owner, document, chunk, np.array([1, 0, 0, 0], np.float32)))
    return entries


async def _measure(
    store: VectorStore, index_name: str, owner: Owner, folder: Path, language: str
) -> tuple[float, float]:
    questions = [
        (str(question["question"]), f"{language}-{number}")
        for number, paragraph in enumerate(_read_paragraphs(folder, language))
        for question in paragraph["qas"]  # type: ignore[attr-defined]
    ]
    questions = questions[:: max(1, len(questions) // _QUESTIONS)][:_QUESTIONS]
    searcher = store.searcher()
    gains = []
    for question, document_id in questions:
        [ranking] = await searcher.rankings(index_name, owner, [RankingRequest(question, _HITS)])
        ids = [candidate.document_id for candidate in ranking]
        gains.append(1 / math.log2(ids.index(document_id) + 2) if document_id in ids else 0.0)
    await searcher.close()
    return float(np.mean(gains[::2])), float(np.mean(gains[1::2]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
