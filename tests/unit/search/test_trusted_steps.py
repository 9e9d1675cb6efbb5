"""Trusted search steps of systems, and their positions in the list of steps."""

from __future__ import annotations

from typing import cast
from unittest.mock import Mock

from rag_assets.search.plan import StepLists
from rag_assets.search.progress import SearchProgress
from rag_assets.search.services import SearchServices, TrustedStep

SERVICES = cast("SearchServices", Mock())


class Foreign(TrustedStep):
    """A step in a foreign package that declares itself trusted."""

    def __init__(self, services: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        return progress


def test_plan_with_step_of_another_package_is_not_trusted() -> None:
    names = ("recall", "foreign", "verify", "fuse", "read", "budget")
    lists = StepLists(added={"foreign": Foreign}, profiles={"notes": names})
    assert not lists.plan("notes", SERVICES).is_trusted
