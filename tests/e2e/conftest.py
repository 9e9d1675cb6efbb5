"""Every test of this folder is long: `make test-all` runs it, `make test` does not."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is in this folder; pytest calls it for no other."""
    item.add_marker("long")
