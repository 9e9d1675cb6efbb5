"""Steps of code memory are trusted, and run at their declared positions."""

from __future__ import annotations

from typing import cast
from unittest.mock import Mock

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.search.plan import StepLists, load_installed_steps
from rag_assets.search.services import SearchServices

SERVICES = cast("SearchServices", Mock())


def test_plan_with_steps_of_code_memory_is_trusted() -> None:
    assert load_installed_steps().plan("code-memory", SERVICES).is_trusted


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("recall", "walk", "verify", "fuse", "read"), "'walk' must come before 'recall'"),
        (("expand", "recall", "verify", "fuse", "read"), "'expand' must come after 'recall'"),
        (("recall", "verify", "expand", "fuse", "read"), "'expand' must come before 'verify'"),
    ],
)
def test_trusted_step_at_another_place_is_refused(names: tuple[str, ...], problem: str) -> None:
    added = load_installed_steps().added
    with pytest.raises(ConfigurationError, match=problem):
        StepLists(added=added, profiles={"notes": names})
