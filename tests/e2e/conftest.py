"""Mark all tests of this folder as long, and those that CI leaves out as nightly."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test of this folder; pytest calls this hook for no other.

    An end-to-end test takes minutes of two cores, so CI runs only those marked `ci`.
    """
    item.add_marker("long")
    if item.get_closest_marker("ci") is None:
        item.add_marker("nightly")
