"""Ranked lists: made from the judged sets with the product's code, stored, and loaded again.

    python -m benchmarks.fusion.lists DATA [SET...]     a quarter of an hour, most of it embedding
    python -m benchmarks.fusion.lists --words DATA      after a change of the search by words
    python -m benchmarks.fusion.lists --multilingual DATA [SET...]     samples, by another model

Rankings by words come from the in-memory index, whose scores are Elasticsearch's (a test compares
both). Rankings by vectors come from the shipped model, or from multilingual-e5-small, which takes
200 ms per passage and is therefore used on samples of the sets that are not English. A stored list
contains passage numbers and scores, and no text.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.fusion.sets import SETS, JudgedSet, Passage
from benchmarks.measure import create_parser
from rag_assets.common.tokens import count_tokens
from rag_assets.ingest.chunking.model import Chunk, build_embedding_text, compute_text_hash
from rag_assets.models.embedding.coverage import assess_reading
from rag_assets.models.embedding.local import LocalEmbedder, OnnxEmbedder
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.providers.local import E5Embedder
from rag_assets.storage.index.common_words import find_sentence_language, is_english
from rag_assets.storage.index.fields import build_entry_source
from rag_assets.storage.index.memory.searcher import Row, rank_rows
from rag_assets.storage.index.model import (
    Entry,
    EntryDocument,
    EntryFilter,
    Owner,
    RankingRequest,
)
from rag_assets.storage.index.terms import parse_query_words

DEPTH: Final = 100
"""Candidates of each ranking."""
FOLDER: Final = Path(__file__).with_name("lists")
MULTILINGUAL: Final = FOLDER / "multilingual"
"""The lists of samples by multilingual-e5-small."""
SAMPLED_PASSAGES: Final = 400
SAMPLED_QUESTIONS: Final = 60
_OWNER: Final = Owner("fusion", 1, 1)
_SCALE: Final = 65_535
_BATCH: Final = 64

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ListedSet:
    """The rankings of one set's questions; every array has a row for each question.

    Attributes:
        words: scores by words, best first; 0 where there is no further candidate.
        vectors: cosines, best first.
        word_ids, vector_ids: the passages of these scores.
        grades: grades of the judged passages, by question.
        terms: number of terms in the best passage by words, and in the question.
        english: whether the question is a sentence in English.
        foreign: whether the embedder was not trained for the question's language.
        unread: share of the question's letters that the embedder does not read as words.
    """

    name: str
    kind: str
    language: str
    words: Array
    vectors: Array
    word_ids: Array
    vector_ids: Array
    grades: Sequence[Mapping[int, int]]
    terms: Array
    english: Array
    foreign: Array
    unread: Array

    @property
    def share(self) -> Array:
        """Return the share of the question's terms in the best passage by words; 1 if unknown."""
        matched, count = self.terms.astype(float).T
        share: Array = np.where(matched * count > 0, matched / np.maximum(count, 1), 1.0)
        return share

    @property
    def untouched(self) -> Array:
        """Return a mask of the questions that no choice is based on."""
        mask: Array = np.arange(len(self.grades)) % 2 == 1
        return mask


def main() -> None:
    """Make the lists of all sets, or of the named sets."""
    parser = create_parser(__doc__)
    parser.add_argument("data", type=Path, help="folder of the fetched files; see README.md")
    parser.add_argument("sets", nargs="*", help="sets to make; default: all")
    parser.add_argument("--words", action="store_true", help="keep the stored lists of vectors")
    parser.add_argument("--multilingual", action="store_true", help="use multilingual-e5-small")
    arguments = parser.parse_args()
    folder = MULTILINGUAL if arguments.multilingual else FOLDER
    folder.mkdir(exist_ok=True)
    embedder: LocalEmbedder = E5Embedder() if arguments.multilingual else OnnxEmbedder()
    for name in arguments.sets or SETS:
        began = time.monotonic()
        judged_set = SETS[name](arguments.data)
        if arguments.multilingual:
            if judged_set.language == "en":
                continue
            judged_set = sample_set(judged_set)
        path = folder / f"{name}.npz"
        by_vectors = (
            {key: value for key, value in _read_arrays(path).items() if key.startswith("vectors")}
            if arguments.words
            else asyncio.run(_rank_by_vectors(judged_set, embedder))
        )
        _save_set(
            path,
            judged_set,
            {
                **_rank_by_words(judged_set),
                **_describe_questions(judged_set, embedder),
                **by_vectors,
            },
        )
        counts = f"{len(judged_set.questions)} questions, {len(judged_set.passages)} passages"
        print(f"{name}: {counts}, {time.monotonic() - began:.0f} s", flush=True)


def sample_set(judged_set: JudgedSet) -> JudgedSet:
    """Return the set's first questions, the passages that answer them, and some others."""
    questions = judged_set.questions[:SAMPLED_QUESTIONS]
    answer_positions = {at for _, grades in questions for at in grades}
    others = [at for at in range(len(judged_set.passages)) if at not in answer_positions]
    random.Random(6).shuffle(others)
    chosen = sorted(
        [*answer_positions, *others[: max(0, SAMPLED_PASSAGES - len(answer_positions))]]
    )
    new_positions = {at: number for number, at in enumerate(chosen)}
    return JudgedSet(
        judged_set.kind,
        judged_set.language,
        [judged_set.passages[at] for at in chosen],
        [
            (text, {new_positions[at]: grade for at, grade in grades.items()})
            for text, grades in questions
        ],
    )


def _rank_by_words(judged_set: JudgedSet) -> dict[str, Array]:
    rows = [
        Row(entry.id, _OWNER.tenant, build_entry_source(entry), entry.vector)
        for entry in build_entries(judged_set, _OWNER)
    ]
    positions = {row.id: at for at, row in enumerate(rows)}
    ranked: list[list[tuple[int, float]]] = []
    terms: list[tuple[int, int]] = []
    for question, _ in judged_set.questions:
        candidates = rank_rows(rows, _OWNER, RankingRequest(question, DEPTH, EntryFilter()))
        ranked.append([(positions[candidate.id], candidate.score) for candidate in candidates])
        terms.append(
            (candidates[0].matched if candidates else 0, len(parse_query_words(question).terms))
        )
    return {**_pack("words", ranked), "terms": np.array(terms, np.uint16)}


async def _rank_by_vectors(judged_set: JudgedSet, embedder: LocalEmbedder) -> dict[str, Array]:
    passages, questions = await embed_set(judged_set, embedder)
    ranked = [
        [(int(at), float(row[at])) for at in np.argsort(-row, kind="stable")[:DEPTH]]
        for row in questions @ passages.T
    ]
    return _pack("vectors", ranked)


async def embed_set(judged_set: JudgedSet, embedder: LocalEmbedder) -> tuple[Array, Array]:
    """Return the unit vectors of a set's passages and of its questions."""
    questions = [question for question, _ in judged_set.questions]
    return (
        await _embed(embedder, list_embedding_texts(judged_set), "document"),
        await _embed(embedder, questions, "query"),
    )


def list_embedding_texts(judged_set: JudgedSet) -> list[str]:
    """Return the texts to embed for the passages: title and text."""
    return [build_embedding_text(title, (), text) for title, text in judged_set.passages]


def _describe_questions(judged_set: JudgedSet, embedder: LocalEmbedder) -> dict[str, Array]:
    questions = [question for question, _ in judged_set.questions]
    return {
        "english": np.array([is_english(question) for question in questions], np.bool_),
        "foreign": np.array(
            [
                assess_reading(embedder, q, find_sentence_language(q)) == "foreign"
                for q in questions
            ],
            np.bool_,
        ),
        "unread": np.array(
            [embedder.compute_unread_share([q]) or 0 for q in questions], np.float16
        ),
    }


def build_entries(judged_set: JudgedSet, owner: Owner) -> list[Entry]:
    """Return the passages as entries without vectors, each in its own document."""
    counts = count_tokens([text for _, text in judged_set.passages])
    return [
        _build_entry(owner, at, judged_set.language, passage, counts[at])
        for at, passage in enumerate(judged_set.passages)
    ]


def _build_entry(owner: Owner, number: int, language: str, passage: Passage, tokens: int) -> Entry:
    title, text = passage
    document = EntryDocument(
        document_id=f"{number:05}",
        indexed_key=f"{number:05}",
        source="fusion",
        source_type="file",
        path=f"{number:05}",
        uri=f"{number:05}",
        media_type="text/plain",
        title=title or None,
        access_scope="all",
        modified_at=datetime(2026, 1, 1, tzinfo=UTC),
        language=language,
    )
    digest = compute_text_hash(title, (), text)
    chunk = Chunk(0, text, 0, len(text), 0, (), tokens, digest)
    return Entry(owner, document, chunk, np.zeros(0, np.float32))


async def _embed(embedder: LocalEmbedder, texts: Sequence[str], purpose: Purpose) -> Array:
    parts = [
        (await embedder.embed(texts[at : at + _BATCH], purpose=purpose)).vectors
        for at in range(0, len(texts), _BATCH)
    ]
    return np.concatenate(parts)


def _pack(ranker: str, lists: Sequence[Sequence[tuple[int, float]]]) -> dict[str, Array]:
    """Return passage numbers, and scores as 16-bit shares of the best score."""
    ids = np.zeros((len(lists), DEPTH), np.uint16)
    shares = np.zeros((len(lists), DEPTH), np.uint16)
    best = np.zeros(len(lists), np.float32)
    for at, ranked in enumerate(lists):
        best[at] = ranked[0][1] if ranked else 0.0
        for rank, (passage, score) in enumerate(ranked):
            ids[at, rank] = passage
            shares[at, rank] = max(1, round(score / best[at] * _SCALE))
    return {ranker: ids, f"{ranker}_shares": shares, f"{ranker}_best": best}


def _save_set(path: Path, judged_set: JudgedSet, arrays: Mapping[str, Array]) -> None:
    grades = [
        {str(at): grade for at, grade in judged_grades.items()}
        for _, judged_grades in judged_set.questions
    ]
    about = {"kind": judged_set.kind, "language": judged_set.language, "grades": grades}
    packed = np.frombuffer(json.dumps(about).encode(), np.uint8)
    np.savez_compressed(path, **{"about": packed, **arrays})  # type: ignore[arg-type]


def load_sets(folder: Path = FOLDER) -> list[ListedSet]:
    """Return the stored sets of a folder, in the order of SETS."""
    paths = {name: folder / f"{name}.npz" for name in SETS}
    return [_read_set(name, path) for name, path in paths.items() if path.is_file()]


def _read_arrays(path: Path) -> dict[str, Array]:
    with np.load(path) as stored:
        return {key: stored[key] for key in stored.files}


def _read_set(name: str, path: Path) -> ListedSet:
    arrays = _read_arrays(path)
    about = json.loads(arrays["about"].tobytes())
    scores = {
        ranker: arrays[f"{ranker}_shares"] / _SCALE * arrays[f"{ranker}_best"][:, None]
        for ranker in ("words", "vectors")
    }
    return ListedSet(
        name,
        about["kind"],
        about["language"],
        scores["words"],
        scores["vectors"],
        arrays["words"],
        arrays["vectors"],
        [{int(at): grade for at, grade in grades.items()} for grades in about["grades"]],
        arrays["terms"],
        arrays["english"],
        arrays["foreign"],
        arrays["unread"],
    )


if __name__ == "__main__":
    main()
