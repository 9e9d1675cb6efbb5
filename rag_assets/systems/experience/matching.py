"""Whether two entries are the same problem solved the same way.

Equal but for their writing, they are. Otherwise both cosines must reach bounds that were calibrated
for the embedder, and nothing may keep them apart that vectors hardly tell: see differences.py.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from rag_assets.common.hashing import key_of
from rag_assets.systems.experience.model import ANY_AGENT
from rag_assets.systems.experience.wording import Worded, compared_problem, solution_of


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least cosines of two entries that are the same.

    Attributes:
        problem, solution: of their problems, and of their solutions.
    """

    problem: float
    solution: float


# Calibrated on the pairs of examples/experience (decision 0089).
BOUNDS: Mapping[str, Bounds] = {"local/all-MiniLM-L6-v2": Bounds(problem=0.60, solution=0.60)}
"""By `provider/model` of the embedder; without bounds only equal entries are merged."""


def exact_key(entry: Worded) -> str:
    """Equal for entries that differ in nothing but case, blanks and ways to write a character."""
    return key_of(
        "experience",
        entry.entry_type,
        (entry.gate_type or "").casefold(),
        (entry.agent_type or ANY_AGENT).casefold(),
        normalised(compared_problem(entry)),
        normalised(solution_of(entry)),
    )


def problem_key(entry: Worded) -> str | None:
    """Equal for entries with the same problem, whatever solved it; None: it says none."""
    if entry.entry_type == "gate_approval":
        return None
    return key_of(
        "experience problem",
        entry.entry_type,
        (entry.gate_type or "").casefold(),
        (entry.agent_type or ANY_AGENT).casefold(),
        normalised(compared_problem(entry)),
    )


def normalised(text: str) -> str:
    """A text without differences of case, blanks and ways to write a character."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
