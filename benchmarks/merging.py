"""Measure precision and recall of merging entries of experience, with the shipped model.

    python -m benchmarks.merging

Pairs of examples/experience are compared by the cosines of their problems and of their solutions,
and by facts that keep solutions apart. Bounds and facts were chosen on pairs.jsonl; the promised
figures are those on pairs-held-out.jsonl, which was written and kept separately. No server is
needed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import PROJECT, describe_machine, report_result
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import build_embedder
from rag_assets.systems.experience.assignment import BOUNDS, Bounds
from rag_assets.systems.experience.differences import (
    find_problem_difference,
    find_solution_difference,
)

DATA = PROJECT / "examples" / "experience"
CHOSEN_ON, HELD_OUT = DATA / "pairs.jsonl", DATA / "pairs-held-out.jsonl"
MODEL = "local/all-MiniLM-L6-v2"
_BATCH = 64


@dataclass(frozen=True)
class Pair:
    """Two entries, and whether they should be merged.

    Attributes:
        differs: the fact that keeps them apart; None if there is none.
    """

    category: str
    is_same: bool
    problem: float
    solution: float
    differs: str | None

    def is_near(self, bounds: Bounds) -> bool:
        """Return whether the vectors alone would merge them."""
        return self.problem >= bounds.problem and self.solution >= bounds.solution

    def is_merged(self, bounds: Bounds) -> bool:
        """Return whether they are merged."""
        return self.is_near(bounds) and self.differs is None


def main() -> None:
    """Measure and save the result."""
    before = describe_machine()
    bounds = BOUNDS[MODEL]
    chosen_on, held_out = read_pairs(CHOSEN_ON), read_pairs(HELD_OUT)
    figures = {
        "model": MODEL,
        "bounds": {"problem": bounds.problem, "solution": bounds.solution},
        "chosen_on": compute_rates(chosen_on, bounds),
        "held_out": compute_rates(held_out, bounds),
        "by_category": {
            category: {
                "pairs": len(of_category),
                "merged": sum(pair.is_merged(bounds) for pair in of_category),
                "near": sum(pair.is_near(bounds) for pair in of_category),
            }
            for category in sorted({pair.category for pair in held_out})
            if (of_category := [pair for pair in held_out if pair.category == category])
        },
    }
    report_result("merging", "merging", before, figures)


def read_pairs(path: Path) -> list[Pair]:
    """Return the labelled pairs of a file, with their cosines."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    cosines = {
        part: np.sum(
            embed_texts(row["a"][part] for row in rows)
            * embed_texts(row["b"][part] for row in rows),
            axis=1,
        )
        for part in ("problem", "solution")
    }
    return [
        Pair(
            row["category"],
            row["merge"],
            float(cosines["problem"][number]),
            float(cosines["solution"][number]),
            find_problem_difference(row["a"]["problem"], row["b"]["problem"])
            or find_solution_difference(row["a"]["solution"], row["b"]["solution"]),
        )
        for number, row in enumerate(rows)
    ]


def embed_texts(texts: Iterable[str]) -> Any:
    """Return unit vectors of shape (texts, dimensions)."""
    embedder, todo = build_embedder(EmbedderConfig(provider="local")), list(texts)

    async def embed() -> Any:
        batches = [
            (await embedder.embed(todo[at : at + _BATCH])).vectors
            for at in range(0, len(todo), _BATCH)
        ]
        await embedder.close()
        return np.concatenate(batches)

    return asyncio.run(embed())


def compute_rates(pairs: Sequence[Pair], bounds: Bounds) -> dict[str, float]:
    """Return precision and recall of merges with these bounds."""
    merged = [pair for pair in pairs if pair.is_merged(bounds)]
    right = sum(pair.is_same for pair in merged)
    return {
        "pairs": len(pairs),
        "merged": len(merged),
        "precision": round(right / len(merged), 4) if merged else 1.0,
        "recall": round(right / sum(pair.is_same for pair in pairs), 4),
    }


if __name__ == "__main__":
    main()
