"""What answers vector searches: tests that this can break run once with each.

Such a module says `pytestmark = EACH_BACK_END`: its installation, and so each of its tenants that
the driver syncs, then has its vectors searched in Elasticsearch, or in Postgres. What words find,
what is recorded and how things are cited is the same code for both.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import pytest

BackEnd: TypeAlias = Literal["elasticsearch", "pgvector"]
BACK_ENDS: Final[tuple[BackEnd, ...]] = ("elasticsearch", "pgvector")
EACH_BACK_END: Final = pytest.mark.parametrize("back_end", BACK_ENDS, indirect=True, scope="module")
