"""The registry of the checks that this package's modules declare."""

from __future__ import annotations

from functools import cache

from rag_assets import checks
from rag_assets.checks.tenant_check import TenantCheck
from rag_assets.common.package_contents import collect_values


@cache
def collect_tenant_checks() -> tuple[TenantCheck, ...]:
    """Return all checks, sorted by asset and name."""
    values: tuple[TenantCheck, ...] = collect_values(checks, TenantCheck)
    return tuple(sorted(values, key=lambda check: check.full_name))
