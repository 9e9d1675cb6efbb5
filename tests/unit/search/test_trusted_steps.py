"""Steps of systems that the plan trusts, and the places that they ask for in a list."""

from __future__ import annotations

from typing import cast
from unittest.mock import Mock

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.search.plan import StepLists, installed_steps
from rag_assets.search.progress import SearchProgress
from rag_assets.search.services import SearchServices, TrustedStep

SERVICES = cast("SearchServices", Mock())


class Foreign(TrustedStep):
    """Declares to be trusted, in a package that is not this project's."""

    def __init__(self, services: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        return progress


def test_plan_with_steps_of_code_memory_is_trusted() -> None:
    assert installed_steps().plan("code-memory", SERVICES).is_trusted


def test_plan_with_step_of_another_package_is_not_trusted() -> None:
    names = ("recall", "foreign", "verify", "fuse", "read", "budget")
    lists = StepLists(added={"foreign": Foreign}, profiles={"notes": names})
    assert not lists.plan("notes", SERVICES).is_trusted


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("recall", "walk", "verify", "fuse", "read"), "'walk' must come before 'recall'"),
        (("expand", "recall", "verify", "fuse", "read"), "'expand' must come after 'recall'"),
        (("recall", "verify", "expand", "fuse", "read"), "'expand' must come before 'verify'"),
    ],
)
def test_trusted_step_at_another_place_is_refused(names: tuple[str, ...], problem: str) -> None:
    added = installed_steps().added
    with pytest.raises(ConfigurationError, match=problem):
        StepLists(added=added, profiles={"notes": names})
