"""Reconciliation of the catalog's tenants with tenants.yaml.

A tenant that is no longer listed is disabled, and keeps its data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class _Record(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def configured(self) -> Mapping[str, Any]: ...
    @property
    def configured_state(self) -> str: ...


@dataclass(frozen=True, slots=True)
class TenantChanges:
    """The changes that the catalog needs.

    Attributes:
        put: tenants to create or update, and whether they are enabled.
        disable: ids that the file no longer lists.
    """

    put: tuple[tuple[Mapping[str, Any], bool], ...]
    disable: tuple[str, ...]


def plan_tenants(
    listed: Mapping[str, Mapping[str, Any]], known: Mapping[str, _Record]
) -> TenantChanges:
    """Compare the file with the catalog; tenants of another origin are left alone.

    What applications have set over the file's configuration stays out of it.

    Args:
        listed: configuration by id, from tenants.yaml.
        known: the catalog's tenants by id.
    """
    put = []
    for tenant_id, config in listed.items():
        enabled = config.get("enabled", True) is not False
        record = known.get(tenant_id)
        if record is not None and (record.state == "REMOVING" or record.origin != "file"):
            continue
        state = "ACTIVE" if enabled else "DISABLED"
        if record is None or (record.configured, record.configured_state) != (config, state):
            put.append((config, enabled))
    disable = [
        tenant_id
        for tenant_id, record in known.items()
        if record.origin == "file"
        and record.configured_state == "ACTIVE"
        and tenant_id not in listed
    ]
    return TenantChanges(tuple(put), tuple(disable))
