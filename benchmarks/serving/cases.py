"""The measured cases: a target, a kind of search, a number of callers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rag_assets.tenants.modes import SearchMode

Target = Literal["service", "bare", "bare-threads", "bare-lean", "wrk"]
"""The service; Elasticsearch through its client on one event loop, in threads, or with no more
candidates than hits; the service under load from wrk."""


@dataclass(frozen=True, slots=True)
class LoadCase:
    """One kind of load.

    Attributes:
        repeated: whether a few questions are repeated.
        every_round: whether it is measured in each round, or once.
    """

    target: Target
    mode: SearchMode = "hybrid"
    top_k: int = 5
    callers: int = 50
    tenant: str = "bench"
    repeated: bool = False
    every_round: bool = False

    @property
    def name(self) -> str:
        """Return its name in the output."""
        questions = "-repeated" if self.repeated else ""
        return f"{self.target}-{self.mode}-top{self.top_k}-{self.callers}-{self.tenant}{questions}"


def list_cases(tenants: Sequence[str]) -> list[LoadCase]:
    """Return all cases, each for the service and for Elasticsearch.

    Args:
        tenants: the indexed tenants; `bench` has all cases.
    """
    first = LoadCase("service", every_round=True)
    cases = [
        first,
        replace(first, target="bare"),
        replace(first, target="bare-threads"),
        replace(first, target="bare-lean", every_round=False),
        replace(first, repeated=True),
    ]
    if shutil.which("wrk"):
        cases.append(replace(first, target="wrk", every_round=False))
    for case in _list_other_cases(tenants):
        cases += [case, replace(case, target="bare")]
    return cases


def _list_other_cases(tenants: Sequence[str]) -> Iterator[LoadCase]:
    yield from (LoadCase("service", callers=callers) for callers in (1, 10))
    yield from (LoadCase("service", top_k=top_k) for top_k in (20, 50))
    yield LoadCase("service", mode="knn")
    yield LoadCase("service", mode="text")
    yield from (LoadCase("service", tenant=tenant) for tenant in tenants if tenant != "bench")
