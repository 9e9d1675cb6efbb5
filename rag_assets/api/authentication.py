"""Authentication of requests by token, and the addresses of their clients."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.types import Scope

from rag_assets.api.identity import (
    SERVICE_PREFIX,
    Identity,
    TokenLookups,
    Unauthenticated,
    get_identity,
)
from rag_assets.api.jwt_tokens import JwtVerifier, build_key_finder
from rag_assets.api.settings import JwtSettings, Network
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import sha256_hex
from rag_assets.storage.catalog.accounts.credentials import TokenReader
from rag_assets.storage.catalog.catalog import Catalog

_Address: TypeAlias = IPv4Address | IPv6Address
_CLIENT_PREFIX_BITS = 64


def get_client_address(scope: Scope, proxies: Collection[Network]) -> str:
    """Return the client's address, under which its requests are counted; for IPv6, its /64 network.

    Any client can send X-Forwarded-For, so only the part that trusted proxies wrote is used: the
    result is the last address in the header that does not belong to a trusted proxy.

    Args:
        proxies: networks of the trusted proxies.
    """
    peer = scope.get("client")
    address = _parse_address(peer[0]) if peer else None
    if address is None:
        return ""
    if _is_among(address, proxies):
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
        for part in reversed(forwarded.split(",")):
            previous = _parse_address(part.strip())
            if previous is None:
                break
            address = previous
            if not _is_among(address, proxies):
                break
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _CLIENT_PREFIX_BITS), strict=False))
    return str(address)


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached only from this machine."""
    address = _parse_address(host)
    return host == "localhost" if address is None else address.is_loopback


def _parse_address(text: str) -> _Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_among(address: _Address, networks: Collection[Network]) -> bool:
    return any(address in network for network in networks)


_DIGEST_DIGITS = 12


class Authenticator:
    """The authentication of requests by service token or JWT.

    Args:
        tokens: reads service tokens, and the projects of organizations.
        settings: settings of valid JWTs; None refuses all JWTs.
    """

    def __init__(
        self, tokens: TokenReader, settings: JwtSettings | None, mask: Callable[[str], str]
    ) -> None:
        self._mask = mask
        self._tokens = TokenLookups(tokens)
        self._reader = tokens
        self._jwt = None if settings is None else JwtVerifier(settings, build_key_finder(settings))
        self._fetches_keys = settings is not None and settings.jwks is not None

    async def authenticate(self, authorization: str | None) -> Identity:
        """Return the identity of the token in an Authorization header."""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise Unauthenticated(
                "the request has no bearer token",
                hint="send a token in the header `Authorization: Bearer TOKEN`",
            )
        if token.startswith(SERVICE_PREFIX):
            return await self._add_projects(await get_identity(self._tokens, token))
        if self._jwt is None:
            raise Unauthenticated(
                "this service accepts only service tokens, which start with rag_",
                hint="create a service token with `rag-assets tokens create`",
            )
        # Only fetching keys takes longer than starting a thread.
        if self._fetches_keys:
            identity = await run_sync(self._jwt.verify, token)
        else:
            identity = self._jwt.verify(token)
        return await self._add_projects(replace(identity, name=self._mask_name(identity.name)))

    def _mask_name(self, name: str) -> str:
        """Return the name under which a caller is recorded, with any credential in it masked.

        A digest of the original name is added to a masked name. It distinguishes callers whose
        names differ only in the masked part.
        """
        masked = self._mask(name)
        return name if masked == name else f"{masked}#{sha256_hex(name)[:_DIGEST_DIGITS]}"

    async def _add_projects(self, identity: Identity) -> Identity:
        """Return the identity with the tenants of its organization's current projects added."""
        if identity.organization is None:
            return identity
        projects = await self._reader.projects(identity.organization)
        return replace(identity, tenants=identity.tenants | projects)


def require_authentication(host: str, settings: JwtSettings | None, catalog: Catalog) -> None:
    """Refuse to listen on an address that other machines can reach if no token can be valid.

    Raises:
        ConfigurationError: no key is configured, and no service token exists.
    """
    if is_loopback(host) or settings is not None or catalog.service_tokens.any():
        return
    raise ConfigurationError(
        f"no authentication is configured, and {host} can be reached from other machines",
        hint="set RAG_ASSETS_JWT_SECRET, _PUBLIC_KEY or _JWKS, or run `rag-assets tokens create`",
    )
