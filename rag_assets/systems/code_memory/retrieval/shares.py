"""Shares of relevance that flow along the relations of a repository.

More relevance flows along relations that people follow (a route to its controller, a model to its
table) than along others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rag_assets.systems.code_memory.symbols.names import MEMBER

_WEIGHTS: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "routes_to": (1.0, 0.8),
        MEMBER: (0.6, 0.35),
        "validates_with": (0.9, 0.6),
        "responds_with": (0.8, 0.5),
        "uses_model": (0.8, 0.5),
        "maps_to": (1.0, 0.8),
        "queries_table": (0.9, 0.6),
        "creates": (0.7, 0.95),
        "alters": (0.7, 0.9),
        "renames": (0.7, 0.9),
        "drops": (0.7, 0.9),
        "references": (0.3, 0.3),
        "relates_to": (0.6, 0.4),
        "dispatches": (0.9, 0.7),
        "fires": (0.9, 0.7),
        "listens_to": (0.7, 0.95),
        "observes": (0.6, 0.8),
        "authorizes": (0.8, 0.8),
        "guarded_by": (0.6, 0.3),
        "binds": (0.8, 0.5),
        "calls": (0.8, 0.5),
        "serves": (0.8, 0.8),
        "configured_by": (0.7, 0.5),
        "defines_setting": (0.5, 0.9),
        "tests": (0.5, 0.7),
        "documents": (0.5, 0.7),
        "decides": (0.5, 0.8),
        "bug_in": (0.5, 0.9),
        "changed_by": (0.9, 0.5),
        "extends": (0.6, 0.3),
        "implements": (0.6, 0.7),
        "uses_trait": (0.5, 0.2),
    }
)
"""Shares that flow from the source of a relation to its target, and in the opposite direction."""

OF_DOCUMENTS: Final = frozenset({"documents", "decides", "bug_in", "changed_by", "applies_to"})
"""Kinds of relations stated by documents that do not define anything themselves."""

WEAK: Final = frozenset({"imports", "in_group", "depends_on"})
"""Kinds of relations that say little, and that most nodes have."""

_OTHER: Final = (0.4, 0.3)

_UNNAMED: Final[Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        "makes": (0.7, 0.5),
        "takes": (0.7, 0.4),
        "touches": (0.3, 0.2),
        "returns": (0.4, 0.3),
    }
)
"""Shares along relations that are never shown: a service passed to a method."""


_ONLY_MEMBER: Final = 0.7
"""Share that flows from a class to its only method, since that method is what the class does."""


def share_of(kind: str, way: int, crowd: float) -> float:
    """Return the share of a node's relevance that flows along one of its relations.

    Args:
        kind: the kind of the relation.
        way: 0 from its source to its target, 1 in the opposite direction.
        crowd: number of the node's relations of this kind and direction, which divide the share; an
            uncertain relation counts as less than one.
    """
    if kind == MEMBER and way == 1 and crowd <= 1:
        return _ONLY_MEMBER
    shares = _UNNAMED.get(kind) or _WEIGHTS.get(kind, _OTHER)
    return shares[way] * _part_of(crowd)


@functools.lru_cache(maxsize=4_096)
def _part_of(crowd: float) -> float:
    """Return the part of a share that one relation gets if this many relations divide it."""
    return 1 / (1 + math.log2(max(1.0, crowd)))
