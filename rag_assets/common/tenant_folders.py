"""The folder of a tenant in a file store."""

from __future__ import annotations

import re

from rag_assets.common.errors import ConfigurationError

_TENANT = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*", re.ASCII)
_MAX_TENANT_CHARACTERS = 63


def tenant_folder(tenant: str, incarnation: int) -> str:
    """Return the folder `<tenant>/<incarnation>`; raise a ConfigurationError if one is invalid."""
    if len(tenant) > _MAX_TENANT_CHARACTERS or not _TENANT.fullmatch(tenant):
        raise ConfigurationError(
            f"invalid tenant id {tenant[:80]!r}",
            hint="use lower-case letters and digits, joined by single . _ or -, at most 63 in all",
        )
    if isinstance(incarnation, bool) or not isinstance(incarnation, int) or incarnation < 0:
        raise ConfigurationError(f"invalid incarnation of tenant {tenant}: {incarnation!r}")
    return f"{tenant}/{incarnation}"
