"""What is measured: who is asked, how, by how many at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rag_assets.tenants.model import SearchMode

Door = Literal["service", "bare", "bare-threads", "bare-lean", "wrk"]
"""The service; Elasticsearch by its client, on one event loop, in threads, or for no more
candidates than hits; the service asked by wrk."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of load.

    Attributes:
        repeated: whether few questions are asked over and over.
        every_round: whether it is measured in each round, or once.
    """

    door: Door
    mode: SearchMode = "hybrid"
    top_k: int = 5
    callers: int = 50
    tenant: str = "bench"
    repeated: bool = False
    every_round: bool = False

    @property
    def name(self) -> str:
        """What it is called on the screen."""
        questions = "-repeated" if self.repeated else ""
        return f"{self.door}-{self.mode}-top{self.top_k}-{self.callers}-{self.tenant}{questions}"


def cases(tenants: Sequence[str]) -> list[Case]:
    """All of them, ours and bare side by side.

    Args:
        tenants: that are there; `bench` is always asked.
    """
    first = Case("service", every_round=True)
    found = [
        first,
        replace(first, door="bare"),
        replace(first, door="bare-threads"),
        replace(first, door="bare-lean", every_round=False),
        replace(first, repeated=True),
    ]
    if shutil.which("wrk"):
        found.append(replace(first, door="wrk", every_round=False))
    for case in _others(tenants):
        found += [case, replace(case, door="bare")]
    return found


def _others(tenants: Sequence[str]) -> Iterator[Case]:
    yield from (Case("service", callers=callers) for callers in (1, 10))
    yield from (Case("service", top_k=top_k) for top_k in (20, 50))
    yield Case("service", mode="knn")
    yield Case("service", mode="text")
    yield from (Case("service", tenant=tenant) for tenant in tenants if tenant != "bench")
