"""Vector back ends: tests that depend on the back end run once with each.

A module sets `pytestmark = EACH_BACK_END`. The vectors of its installation's tenants are then
searched in Elasticsearch, or in Postgres. Word search, records and citations are the same code for
both.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import pytest

BackEnd: TypeAlias = Literal["elasticsearch", "pgvector"]
BACK_ENDS: Final[tuple[BackEnd, ...]] = ("elasticsearch", "pgvector")
EACH_BACK_END: Final = pytest.mark.parametrize("back_end", BACK_ENDS, indirect=True, scope="module")
