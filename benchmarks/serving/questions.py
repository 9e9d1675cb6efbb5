"""Draw questions from the documents of a tenant, and embed them.

    python -m benchmarks.serving.questions FILE TENANT FOLDER --count 5000

Afterwards FILE (JSON) holds the questions and the index that bare Elasticsearch has to search. A
second file holds their vectors, from the embedder of the index: bare Elasticsearch gets them, the
service computes its own.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.measure import create_parser

_SEED = 11
_OPENINGS = (
    "what is known about",
    "who says that",
    "where is it written that",
    "since when is it so that",
    "what else holds where",
)


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """The entries that the service would search, for bare Elasticsearch."""

    index_name: str
    tenant: str
    incarnation: int
    generation: int
    embedder_id: str
    chunks: int


@dataclass(frozen=True, slots=True)
class DrawnQuestions:
    """Questions with their vectors.

    Attributes:
        vectors: array of shape (questions, dimensions).
    """

    target: SearchTarget
    queries: Sequence[str]
    vectors: npt.NDArray[np.float32]


def draw_questions(texts: Sequence[str], count: int) -> list[str]:
    """Draw distinct questions with words of these texts, reproducibly."""
    rng = random.Random(_SEED)
    questions: dict[str, None] = {}
    while len(questions) < count:
        sentences = list(_split_sentences(rng.choice(texts)))
        words = rng.choice(sentences).split()
        length = rng.randint(6, 12)
        start = rng.randint(0, max(0, len(words) - length))
        phrase = " ".join(words[start : start + length]).rstrip(".,:")
        questions[f"{rng.choice(_OPENINGS)} {phrase}?"] = None
    return list(questions)


def _split_sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line[:1].isalpha():
            yield from line.split(". ")


def read_questions(path: Path) -> DrawnQuestions:
    """Read the files that `main` wrote."""
    content = json.loads(path.read_text())
    return DrawnQuestions(
        SearchTarget(**content["place"]),
        content["queries"],
        np.load(_get_vectors_path(path), mmap_mode="r"),
    )


def _get_vectors_path(path: Path) -> Path:
    return path.with_suffix(".npy")


def _has_vectors(path: Path, embedder_id: str, queries: list[str]) -> bool:
    """Return whether the vectors of these questions exist from the last run."""
    if not path.exists():
        return False
    before = json.loads(path.read_text())
    return bool(before["queries"] == queries and before["place"].get("embedder_id") == embedder_id)


def _write_questions(path: Path, tenant_id: str, queries: list[str]) -> None:
    from rag_assets.cli.session import Session
    from rag_assets.storage.index.model import Owner

    with Session() as session:
        record = session.catalog.tenants.get(tenant_id)
        serving = session.catalog.generations.serving(tenant_id)
        if serving is None:
            raise SystemExit(f"{tenant_id} has no serving build: sync it first")
        owner = Owner(record.id, record.incarnation, serving.number)
        chunks = session.store.entries.count(serving.index_name, owner)
        target = SearchTarget(
            serving.index_name,
            record.id,
            record.incarnation,
            serving.number,
            serving.embedder_id,
            chunks,
        )
        if not _has_vectors(path, target.embedder_id, queries):
            tenant = session.embedders.tenant(record)
            embedder = session.embedders.get_generation_embedder(record.ref, tenant, serving)
            answer = asyncio.run(embedder.embed(queries, purpose="query"))
            np.save(_get_vectors_path(path), answer.vectors)
    path.write_text(json.dumps({"place": asdict(target), "queries": queries}))


def main() -> None:
    """Write the files."""
    parser = create_parser(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("tenant")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, required=True)
    arguments = parser.parse_args()
    texts = [path.read_text() for path in sorted(arguments.folder.rglob("*.md"))]
    _write_questions(arguments.file, arguments.tenant, draw_questions(texts, arguments.count))


if __name__ == "__main__":
    main()
