"""Orders code candidates by relevance, requested kind and variety.

An answer that follows a chain needs room for each link. So a file's second passage comes after the
first passages of other files, and a class head comes after its methods. The best candidate of each
requested kind is moved up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.ingest.sources.model import path_of
from rag_assets.storage.index.model import Candidate
from rag_assets.systems.code_memory.retrieval.asked_kinds import AskedKinds
from rag_assets.systems.code_memory.symbols.source_types import is_test

_ASKED: Final = 1.5
"""Factor for candidates of a kind that the question asks for."""
_FIRST: Final = 1.6
"""Additional factor for the first candidate of each kind that the question asks for."""
_PREFERRED: Final = 3.0
"""Factor for candidates in paths that the caller prefers."""
_TEST: Final = 0.4
"""Factor for tests if the question is not about tests."""
_TOLD: Final = 0.7
"""Factor for text about code, such as documentation and configuration."""
_HEAD: Final = 0.6
"""Factor for the head of a class whose methods have passages of their own."""
_CONSTRUCTOR: Final = 0.5
_SAME_FILE: Final = 0.6
"""Factor for each passage of a file after its first."""

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
        source_type: type of the definition or text.
        preferred: whether it lies in a path that the caller prefers.
    """

    candidate: Candidate
    score: float
    source_type: str
    preferred: bool = False


def arrange_candidates(rated: Sequence[Rated], asked: AskedKinds, count: int) -> list[Candidate]:
    """Return the candidates in the order in which they are shown.

    Args:
        rated: candidates, without duplicates.
        asked: kinds that the question asks for.
        count: number of candidates that are chosen one by one; the others follow by relevance.
    """
    left = sorted(
        ((_weigh_candidate(one, asked), one) for one in rated),
        key=lambda one: (-one[0], one[1].candidate.id),
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


def _weigh_candidate(one: Rated, asked: AskedKinds) -> float:
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
    """Return whether a passage is the head of a class whose methods have separate passages."""
    is_class = bool(symbol) and "::" not in symbol
    return is_class and (kind in _WORKING or (kind == "code" and "\\" in symbol))
