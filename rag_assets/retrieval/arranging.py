"""The order of candidates of source code: relevance, what the question asks for, and room for each.

An answer along a chain needs a place for each of its links. So the second passage of a file comes
after other files' first ones, the head of a class after its methods, and the best of each kind that
is asked for comes up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.code.places import is_test
from rag_assets.ingest.sources.model import path_of
from rag_assets.retrieval.asked_kinds import AskedKinds
from rag_assets.storage.index.model import Candidate

_ASKED: Final = 1.5
"""Factor of what is of a kind that the question asks for."""
_FIRST: Final = 1.6
"""Further factor of the first of each such kind."""
_PREFERRED: Final = 3.0
"""Factor of what lies in paths that the caller prefers."""
_TEST: Final = 0.4
"""Factor of tests, unless they are asked for."""
_TOLD: Final = 0.7
"""Factor of what tells of code and is none."""
_HEAD: Final = 0.6
"""Factor of the head of a class whose methods do the work."""
_CONSTRUCTOR: Final = 0.5
_SAME_FILE: Final = 0.6
"""Factor of each further passage of a file."""

_TELLING: Final = frozenset({"doc", "readme", "config", "api_endpoint"})
_WORKING: Final = frozenset(
    {"controller", "service", "listener", "policy", "job", "middleware", "request"}
)
_CONSTRUCTORS: Final = ("::__construct", ".__init__", ".constructor")


@dataclass(frozen=True, slots=True)
class Rated:
    """A candidate with its relevance.

    Attributes:
        score: its relevance.
        source_type: what it is.
        preferred: whether it lies in a path that the caller prefers.
    """

    candidate: Candidate
    score: float
    source_type: str
    preferred: bool = False


def arranged(rated: Sequence[Rated], asked: AskedKinds, count: int) -> list[Candidate]:
    """The candidates in the order in which they are shown.

    Args:
        rated: candidates, each once.
        asked: what the question asks for.
        count: how many are chosen one by one; the others follow by relevance.
    """
    left = sorted(
        ((_worth(one, asked), one) for one in rated), key=lambda one: (-one[0], one[1].candidate.id)
    )
    chosen: list[Candidate] = []
    of_file: Counter[str] = Counter()
    of_kind: Counter[str] = Counter()
    while left and len(chosen) < count:

        def room(at: int) -> float:
            worth, one = left[at]
            is_first = one.source_type in asked.types and not of_kind[one.source_type]
            return worth * _SAME_FILE ** of_file[one.candidate.uri] * (_FIRST if is_first else 1)

        _, one = left.pop(max(range(len(left)), key=room))
        chosen.append(one.candidate)
        of_file[one.candidate.uri] += 1
        of_kind[one.source_type] += 1
    return [*chosen, *(one.candidate for _, one in left)]


def _worth(one: Rated, asked: AskedKinds) -> float:
    symbol, kind = one.candidate.symbol, one.source_type
    factors = (
        (_ASKED, kind in asked.types),
        (_PREFERRED, one.preferred),
        (_TEST, not asked.tests and is_test(path_of(one.candidate.uri))),
        (_TOLD, kind in _TELLING),
        (_HEAD, _is_head(symbol, kind)),
        (_CONSTRUCTOR, symbol.endswith(_CONSTRUCTORS)),
    )
    worth = one.score
    for factor, holds in factors:
        if holds:
            worth *= factor
    return worth


def _is_head(symbol: str, kind: str) -> bool:
    """Whether a passage is the head of a class that has methods in passages of their own."""
    is_class = bool(symbol) and "::" not in symbol
    return is_class and (kind in _WORKING or (kind == "code" and "\\" in symbol))
