"""How surely two entries of experience are told to be the same, with the shipped model.

    python -m benchmarks.merging

The pairs of examples/experience, by the cosines of their problems and of their solutions, and by
the facts that keep solutions apart. Bounds are chosen on one half, as those of the highest recall
without a wrong merge, and reported on the other. No server is needed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import Any

import numpy as np

from benchmarks.measure import PROJECT, load, machine, save
from rag_assets.models.config.embedder import EmbedderConfig
from rag_assets.models.factory import build_embedder
from rag_assets.systems.experience.differences import differ, problems_differ
from rag_assets.systems.experience.matching import Bounds

PAIRS = PROJECT / "examples" / "experience" / "pairs.jsonl"
STEPS = [round(0.40 + 0.02 * step, 2) for step in range(30)]
_BATCH = 64


@dataclass(frozen=True)
class Pair:
    """Two entries, and whether they are the same.

    Attributes:
        differs: in what they differ; None: in nothing that keeps them apart.
    """

    category: str
    same: bool
    problem: float
    solution: float
    differs: str | None

    def is_merged(self, bounds: Bounds) -> bool:
        """Whether these bounds make them one."""
        near = self.problem >= bounds.problem and self.solution >= bounds.solution
        return near and self.differs is None


def main() -> None:
    """Measure, and write the result."""
    before = machine()
    found = pairs()
    bounds = chosen(found[0::2])
    result = {
        "benchmark": "merging",
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "pairs": len(found),
        "bounds": {"problem": bounds.problem, "solution": bounds.solution},
        "chosen_on": rates(found[0::2], bounds),
        "held_out": rates(found[1::2], bounds),
        "kept_apart_by_facts": {
            category: sum(one.differs is not None for one in of_it) / len(of_it)
            for category in sorted({one.category for one in found})
            if (of_it := [one for one in found if one.category == category])
        },
        "machine": before,
        "load_average_after": load(),
    }
    print(save("merging", result))


def pairs() -> list[Pair]:
    """The labelled pairs, with their cosines."""
    rows = [json.loads(line) for line in PAIRS.read_text().splitlines()]
    cosines = {
        part: np.sum(
            vectors(row["a"][part] for row in rows) * vectors(row["b"][part] for row in rows),
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
            problems_differ(row["a"]["problem"], row["b"]["problem"])
            or differ(row["a"]["solution"], row["b"]["solution"]),
        )
        for number, row in enumerate(rows)
    ]


def vectors(texts: Iterable[str]) -> Any:
    """Unit vectors of shape (texts, dimensions)."""
    embedder, todo = build_embedder(EmbedderConfig(provider="local")), list(texts)

    async def embed() -> Any:
        made = [
            (await embedder.embed(todo[at : at + _BATCH])).vectors
            for at in range(0, len(todo), _BATCH)
        ]
        await embedder.close()
        return np.concatenate(made)

    return asyncio.run(embed())


def chosen(found: Sequence[Pair]) -> Bounds:
    """The bounds with the highest recall of those without a wrong merge."""
    right = (Bounds(*both) for both in product(STEPS, STEPS))
    return max(
        (bounds for bounds in right if rates(found, bounds)["precision"] == 1.0),
        key=lambda bounds: rates(found, bounds)["recall"],
    )


def rates(found: Sequence[Pair], bounds: Bounds) -> dict[str, float]:
    """Precision and recall of merges by these bounds."""
    merged = [one for one in found if one.is_merged(bounds)]
    right = sum(one.same for one in merged)
    return {
        "precision": round(right / len(merged), 4) if merged else 1.0,
        "recall": round(right / sum(one.same for one in found), 4),
    }


if __name__ == "__main__":
    main()
