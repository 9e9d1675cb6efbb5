"""Client addresses of requests, as far as they can be trusted."""

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
    """The address that a request counts for: of IPv6 the network, since one site has all of it.

    Any client can send X-Forwarded-For. So it is trusted only as far as known proxies wrote it:
    the last address in it that is no proxy's.

    Args:
        scope: of the request.
        proxies: trusted for X-Forwarded-For.
    """
    peer = scope.get("client")
    address = _parsed(peer[0]) if peer else None
    if address is None:
        return ""
    if _is_among(address, proxies):
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
        for part in reversed(forwarded.split(",")):
            before = _parsed(part.strip())
            if before is None:
                break
            address = before
            if not _is_among(address, proxies):
                break
    if isinstance(address, IPv6Address):
        return str(ip_network((address, _SITE), strict=False))
    return str(address)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address that is listened at."""
    address = _parsed(host)
    return host == "localhost" if address is None else address.is_loopback


def _parsed(text: str) -> _Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_among(address: _Address, networks: Collection[Network]) -> bool:
    return any(address in network for network in networks)
