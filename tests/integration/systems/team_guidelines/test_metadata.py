"""Guidelines indexed by a version whose entries did not have the ids of their project."""

from __future__ import annotations

from typing import Any

from tests.installation import Installation

TEXT = b"# Seals\n\nThe lighthouse keeper counted seventeen grey seals at dawn.\n"


def metadata(installation: Installation, tenant: str) -> list[Any]:
    ctx = installation.context(tenant)
    serving = ctx.catalog.generations.serving(tenant)
    assert serving is not None
    stored = ctx.store.entries.stored(serving.index_name, ctx.owner(serving))
    return [hit.fields["metadata"] for hit in stored]
