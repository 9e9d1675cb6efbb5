"""FastAPI dependencies that routes share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from rag_assets.api.backend import Backend
from rag_assets.api.identity import Identity

_bearer = HTTPBearer(auto_error=False, description="A JWT, or a service token.")


async def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


async def _identity(
    request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
) -> Identity:
    """Return the caller's identity, as established by the guard."""
    identity: Identity = request.state.identity
    return identity


BackendDependency = Annotated[Backend, Depends(_backend)]
IdentityDependency = Annotated[Identity, Depends(_identity)]
