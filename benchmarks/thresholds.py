"""Evaluate thresholds that are calibrated with random passages, for several widths.

    python -m benchmarks.thresholds

Each corpus is embedded with the shipped model. A question is compared with random passages of its
corpus; the floor lies a number of spreads (the width) above their median. For each width, the
result has the share of questions whose relevant passage is above the floor, and the share of
unanswerable questions with no passage above it.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ruamel.yaml import YAML

from benchmarks.measure import describe_machine, save_result
from examples.judge import HANDBOOK
from examples.judged.judgements import ANNEX, judged_questions
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.search.scoring import (
    CALIBRATION_QUESTIONS,
    SAMPLES_PER_QUESTION,
    compute_question_floor,
    compute_threshold,
)

HERE = Path(__file__).resolve().parent
EXPERIENCE = HERE.parent / "examples" / "experience"
WIDTHS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
SEEDS = range(20)

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CalibrationCorpus:
    """Passages and questions.

    Attributes:
        questions: each with the positions of its relevant passages; empty if unanswerable.
    """

    name: str
    passages: Sequence[str]
    questions: Sequence[tuple[str, frozenset[int]]]


def main() -> None:
    """Measure every corpus and save the result."""
    embedder = OnnxEmbedder()
    result: dict[str, Any] = {
        "benchmark": "thresholds",
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "questions": CALIBRATION_QUESTIONS,
        "samples": SAMPLES_PER_QUESTION,
        "corpora": {corpus.name: measure_corpus(embedder, corpus) for corpus in list_corpora()},
        "machine": describe_machine(),
    }
    print(save_result("thresholds", result))


def list_corpora() -> Iterator[CalibrationCorpus]:
    """Yield the handbook, entries of experience, and guidelines in three further languages."""
    passages = [text for root in (HANDBOOK, ANNEX) for text in read_paragraphs(root)]
    yield CalibrationCorpus(
        "handbook (en)",
        passages,
        [
            (
                judged.question,
                frozenset(
                    at
                    for at, text in enumerate(passages)
                    if any(j.quote and " ".join(j.quote.split()) in text for j in judged.relevant)
                ),
            )
            for judged in judged_questions()
        ],
    )
    yield read_experience()
    languages: Mapping[str, Any] = YAML(typ="safe").load(HERE / "threshold_languages.yaml")
    for language, entry in languages.items():
        questions = [(text, frozenset({at})) for text, at in entry["questions"]]
        nothing: list[tuple[str, frozenset[int]]] = [(t, frozenset()) for t in entry["unanswered"]]
        yield CalibrationCorpus(
            f"guidelines ({language})", entry["passages"], [*questions, *nothing]
        )


def read_paragraphs(root: Path) -> Iterator[str]:
    """Yield the texts of a folder, cut at headings, in lengths similar to guidelines."""
    for path in sorted([*root.rglob("*.md"), *root.rglob("*.html")]):
        for part in path.read_text(encoding="utf-8").split("\n#"):
            text = " ".join(part.split())
            yield from (text[at : at + 1_800] for at in range(0, len(text), 1_800))


def read_experience() -> CalibrationCorpus:
    """Return the entries of the example, with its questions about failures."""
    entries = read_lines(EXPERIENCE / "entries.jsonl")
    texts = [
        f"Failure: {e.get('failure_description') or e.get('feedback') or e.get('approach') or ''}"
        f"\nError: {e.get('error_message', '')}"
        for e in entries
    ]
    positions = {entry["external_id"]: at for at, entry in enumerate(entries)}
    questions = [
        (
            f"Failure: {q['failure_description']}\nError: {q.get('error_message', '')}",
            frozenset(positions[id_] for id_ in q.get("relevant", {}) if id_ in positions),
        )
        for q in read_lines(EXPERIENCE / "questions.jsonl")
        if q["kind"] == "failure"
    ]
    return CalibrationCorpus("experience, failures (en)", texts, questions)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Parse the lines of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measure_corpus(embedder: OnnxEmbedder, corpus: CalibrationCorpus) -> dict[str, Any]:
    """Return the shares that each width keeps and rejects, over several random samples."""
    cosines = embed_texts(embedder, [q for q, _ in corpus.questions]) @ (
        embed_texts(embedder, corpus.passages).T
    )
    answered = [at for at, (_, relevant) in enumerate(corpus.questions) if relevant]
    unanswered = [at for at, (_, relevant) in enumerate(corpus.questions) if not relevant]
    best = [max(cosines[at, i] for i in corpus.questions[at][1]) for at in answered]
    nearest = [cosines[at].max() for at in unanswered]
    rows = {}
    for width in WIDTHS:
        floors = [compute_floor(cosines, width, seed) for seed in SEEDS]
        rows[f"{width:g}"] = {
            "floor": [
                round(min(floors), 3),
                round(float(np.median(floors)), 3),
                round(max(floors), 3),
            ],
            "kept": round(float(np.mean([np.mean(np.array(best) >= f) for f in floors])), 3),
            "rejected": compute_share([np.array(nearest) < f for f in floors]),
            "passages_above": round(
                float(
                    np.mean(
                        [(np.sort(cosines, axis=1)[:, -5:] >= f).sum(axis=1).mean() for f in floors]
                    )
                ),
                2,
            ),
        }
    return {
        "passages": len(corpus.passages),
        "answered": len(answered),
        "unanswered": len(unanswered),
        "widths": rows,
    }


def compute_share(rejected: Sequence[npt.NDArray[np.bool_]]) -> float | None:
    """Return the mean share of rejected questions; None if there are no questions."""
    return round(float(np.mean([r.mean() for r in rejected])), 3) if rejected[0].size else None


def compute_floor(cosines: Matrix, width: float, seed: int) -> float:
    """Return the floor that a random sample of questions calibrates."""
    chance = random.Random(seed)
    first = chance.sample(range(len(cosines)), min(CALIBRATION_QUESTIONS, len(cosines)))
    floors = []
    for at in first:
        passages = chance.sample(
            range(cosines.shape[1]), min(SAMPLES_PER_QUESTION, cosines.shape[1])
        )
        floors.append(compute_question_floor([cosines[at, i] for i in passages], width))
    return compute_threshold(floors)


def embed_texts(embedder: OnnxEmbedder, texts: Sequence[str]) -> Matrix:
    """Return the unit vectors of texts."""
    rows = [
        asyncio.run(embedder.embed(texts[at : at + 50], purpose="document")).vectors
        for at in range(0, len(texts), 50)
    ]
    return np.concatenate(rows).astype(np.float64)


if __name__ == "__main__":
    main()
