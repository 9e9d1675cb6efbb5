"""The client address of a request, taken from proxy headers only if they can be trusted."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.types import Scope

from rag_assets.api.settings import Network

_Address: TypeAlias = IPv4Address | IPv6Address
_SITE = 64


def client_of(scope: Scope, proxies: Collection[Network]) -> str:
    """Return the address under which a request is counted; for IPv6, the /64 network of the client.

    Any client can send X-Forwarded-For, so only the part that known proxies wrote is trusted: the
    result is the last address in the header that does not belong to a known proxy.

    Args:
        scope: the request's ASGI scope.
        proxies: networks of proxies that are trusted for X-Forwarded-For.
    """
    peer = scope.get("client")
    address = _parse_address(peer[0]) if peer else None
    if address is None:
        return ""
    if _is_among(address, proxies):
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
        for part in reversed(forwarded.split(",")):
            before = _parse_address(part.strip())
            if before is None:
                break
            address = before
            if not _is_among(address, proxies):
                break
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _SITE), strict=False))
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
