"""Mark all tests of this folder as long: `make test-all` runs them, `make test` does not."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test of this folder; pytest calls this hook for no other."""
    item.add_marker("long")
