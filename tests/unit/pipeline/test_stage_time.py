"""How long a stage goes on with urgent documents, and with others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rag_assets.pipeline.context import SliceLimits, TenantContext
from rag_assets.pipeline.slices import StageTime


def stage(*, is_hurried: bool = False, has_changed: bool = False, at: float) -> StageTime:
    """A stage of ten seconds that began so many seconds ago."""
    fields = SimpleNamespace(
        limits=SliceLimits(hurried_seconds=1.0), has_changed=lambda: has_changed
    )
    made = StageTime(cast("TenantContext", cast("Any", fields)), 10.0, is_hurried=is_hurried)
    made.deadline -= at
    made._hurried_deadline -= at
    return made


@pytest.mark.parametrize(
    ("is_hurried", "has_changed", "at", "urgent_over", "other_over"),
    [
        (False, False, 0.5, False, False),
        (False, False, 5.0, False, False),
        (False, False, 11.0, True, True),
        (True, False, 0.5, False, False),
        (True, False, 5.0, False, True),
        (False, True, 0.5, False, False),
        (False, True, 5.0, False, True),
        (True, True, 11.0, True, True),
    ],
)
def test_others_are_put_off_while_something_urgent_waits(
    is_hurried: bool, has_changed: bool, at: float, urgent_over: bool, other_over: bool
) -> None:
    made = stage(is_hurried=is_hurried, has_changed=has_changed, at=at)
    assert made.is_over(is_urgent=True) == urgent_over
    assert made.is_over(is_urgent=False) == other_over
