"""The share of each worker in the limits of the service."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.api.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class Turns:
    """The maximum concurrent turns of a worker.

    Attributes:
        at_once: maximum for all tenants together.
        of_one_tenant: maximum for a single tenant.
    """

    at_once: int
    of_one_tenant: int

    @classmethod
    def dealt(cls, turns: int, worker: int = 0, workers: int = 1) -> Turns:
        """Return a worker's share of all turns.

        The shares of all workers add up to the whole, both in total and for a single tenant. A
        tenant gets at most three quarters of the whole. With several workers, a tenant never gets
        all turns of a worker.

        Args:
            turns: maximum concurrent turns of all workers together.
            worker: number of the worker, from 0.
            workers: number of workers.
        """
        mine, tenants = (_dealt(whole, worker, workers) for whole in (turns, turns - turns // 4))
        return cls(mine, tenants if workers == 1 else max(1, min(tenants, mine - 1)))


@dataclass(frozen=True, slots=True)
class Share:
    """The limits on the concurrent work of one worker.

    Attributes:
        searches: turns for searches.
        reads: turns for lists and documents.
        uploads: turns for receiving uploads.
    """

    searches: Turns
    reads: Turns
    uploads: Turns

    @classmethod
    def of(cls, settings: ServiceSettings, worker: int = 0) -> Share:
        """Return the share of a worker, counted from 0."""
        workers = settings.workers
        return cls(
            Turns.dealt(settings.searches, worker, workers),
            Turns.dealt(settings.threads, worker, workers),
            Turns.dealt(settings.uploads, worker, workers),
        )


def _dealt(whole: int, worker: int, workers: int) -> int:
    return whole // workers + (worker < whole % workers)
