"""Common parts of the endpoints for the admins and writers of a workspace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query, Request

from rag_assets.api.backend import Backend
from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.model import TenantQuery
from rag_assets.api.problems import documented

REFUSED = documented(400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503)
"""Responses of these endpoints to refused requests."""


@dataclass(frozen=True, slots=True)
class Administered:
    """The workspace that a request addresses.

    Attributes:
        tenant: its id.
        by: the caller's name.
        backend: answers the request.
    """

    tenant: str
    by: str
    backend: Backend


async def administered(
    request: Request,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Administered:
    """Return the workspace that a request addresses; refuse all callers but its admins."""
    tenant = request.state.tenant = identity.administered(parameters.tenant)
    return Administered(tenant, identity.name, backend)


async def written(
    request: Request,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Administered:
    """Return the workspace that a request writes to; refuse all but its admins and writers."""
    tenant = request.state.tenant = identity.written(parameters.tenant)
    return Administered(tenant, identity.name, backend)


AdministeredDependency = Annotated[Administered, Depends(administered)]
WrittenDependency = Annotated[Administered, Depends(written)]
