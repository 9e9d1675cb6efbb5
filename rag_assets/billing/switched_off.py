"""An embedder that makes no vectors, because an organization has its guidelines switched off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from rag_assets.common.errors import GuidelinesOff
from rag_assets.models.embedding.protocol import Embedder, Purpose
from rag_assets.models.embedding.wrapped import WrappedEmbedder
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.profiles import DEFAULT_PROFILE, profile_of


def is_switched_off(record: TenantRecord) -> bool:
    """Whether nothing is embedded for a tenant, because of a switch of its organization."""
    profile = record.config.get("profile", DEFAULT_PROFILE)
    return profile_of(profile).follows_guidelines and not record.rag_guidelines


def guidelines_off(organization: str | None) -> GuidelinesOff:
    """The error for what is not done while an organization has its guidelines switched off."""
    return GuidelinesOff(
        f"organization {organization!r} has its guidelines switched off",
        hint=f"`rag-assets organizations put {organization} --guidelines` switches them on",
    )


class SwitchedOffEmbedder(WrappedEmbedder):
    """An embedder of which every call fails, and which is like the wrapped one otherwise.

    Args:
        embedder: would make the vectors.
        record: the tenant.
    """

    def __init__(self, embedder: Embedder, record: TenantRecord) -> None:
        super().__init__(embedder)
        self._organization = record.organization

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> NoReturn:
        """Fail.

        Raises:
            GuidelinesOff: always.
        """
        raise guidelines_off(self._organization)
