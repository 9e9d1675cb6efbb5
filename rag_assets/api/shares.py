"""The share of the service's limits that each of its workers has."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.api.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns that one worker may give.

    Attributes:
        at_once: of all tenants.
        of_one_tenant: of any one.
    """

    at_once: int
    of_one_tenant: int

    @classmethod
    def dealt(cls, turns: int, worker: int = 0, workers: int = 1) -> Turns:
        """One worker's share of the turns: the shares of all are the whole, for a tenant as well.

        No tenant has more than three quarters of the whole, nor, where there are several workers,
        all turns of one of them.

        Args:
            turns: of all workers.
            worker: from 0.
            workers: number of them.
        """
        mine, tenants = (_dealt(whole, worker, workers) for whole in (turns, turns - turns // 4))
        return cls(mine, tenants if workers == 1 else max(1, min(tenants, mine - 1)))


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker may do at once.

    Attributes:
        searches: under way.
        reads: of lists and documents.
        uploads: that are received.
    """

    searches: Turns
    reads: Turns
    uploads: Turns

    @classmethod
    def of(cls, settings: ServiceSettings, worker: int = 0) -> Share:
        """The share of one of the workers, counted from 0."""
        workers = settings.workers
        return cls(
            Turns.dealt(settings.searches, worker, workers),
            Turns.dealt(settings.threads, worker, workers),
            Turns.dealt(settings.uploads, worker, workers),
        )


def _dealt(whole: int, worker: int, workers: int) -> int:
    return whole // workers + (worker < whole % workers)
