"""Opt-in: some tenants are not embedded until their organization switches it on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from rag_assets.common.errors import NotOptedIn
from rag_assets.models.embedding.protocol import Embedder, Purpose, WrappedEmbedder
from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.profiles import get_profile


def lacks_opt_in(record: TenantRecord) -> bool:
    """Return whether a tenant must not be embedded until its organization opts in."""
    return get_profile(record.profile).opt_in_problem is not None and not record.has_opted_in


def require_opt_in(profile: str, organization: str | None, *, has_opted_in: bool) -> None:
    """Require that an organization has opted in, if the profile of its tenant requires that.

    Raises:
        NotOptedIn: the organization has not opted in; the class is the problem that the profile
            names.
    """
    problem = get_profile(profile).opt_in_problem
    if problem is not None and not has_opted_in:
        raise _build_error(problem, organization)


def _build_error(problem: str, organization: str | None) -> NotOptedIn:
    error: type[NotOptedIn] = installed_systems().parts("problems")[problem].load()
    return error.from_organization(organization)


class NotOptedInEmbedder(WrappedEmbedder):
    """An embedder that refuses every call because the tenant's organization has not opted in.

    Args:
        embedder: describes the model.
        record: the tenant.
    """

    def __init__(self, embedder: Embedder, record: TenantRecord) -> None:
        super().__init__(embedder)
        self._problem = get_profile(record.profile).opt_in_problem or ""
        self._organization = record.organization

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> NoReturn:
        """Refuse the call.

        Raises:
            NotOptedIn: always.
        """
        raise _build_error(self._problem, self._organization)
