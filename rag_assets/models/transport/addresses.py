"""Rules for the servers that tenants may name, by URL and by address (against SSRF).

A tenant names a server, and this process connects to it. Without these rules, a tenant could reach
any server that this machine can reach, such as a cloud's metadata service or another tenant's
database.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from rag_assets.common.errors import ProviderRefused
from rag_assets.common.private_endpoints import Address, PrivateEndpoints

_UNICAST = IPv6Network("2000::/3")  # all global unicast addresses that IANA has assigned
_NAT64 = IPv6Network("64:ff9b::/96")
# Networks that ipaddress, in this or an earlier Python, calls global although they have no public
# servers.
_NOT_PUBLIC = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv6Network("2001::/23"),  # protocol assignments, including Teredo and ORCHID
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("5f00::/16"),  # segment routing
)


def is_public(address: Address) -> bool:
    """Return whether an address belongs to a server on the public internet.

    An address that embeds an IPv4 address (IPv4-mapped, NAT64, 6to4) is public if the embedded
    address is public.
    """
    embedded = _embedded(address)
    if embedded is not None:
        return is_public(embedded)
    if address.is_multicast or not address.is_global:
        return False
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


def _embedded(address: Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def normal_base_url(url: str) -> str:
    """Normalise a base_url: remove a trailing slash, and put its host in lower case.

    Raises:
        ValueError: the URL is not usable. The message does not quote it, since a malformed URL
            may contain a password.
    """
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("base_url has characters that are not valid in a URL")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("base_url is not a URL") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("base_url must begin with https:// (or http://) and name a server")
    if "@" in parts.netloc:
        raise ValueError("base_url must have no user and no password; a key goes into api_key")
    if "?" in url or "#" in url:
        raise ValueError("base_url must have no query and no fragment (? and #)")
    if port == 0:
        raise ValueError("base_url has an invalid port")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    where = host if port is None else f"{host}:{port}"
    return f"{parts.scheme}://{where}{parts.path.rstrip('/')}"


def permitted(
    resolved: list[str], *, scheme: str, host: str, port: int, allowed: PrivateEndpoints
) -> list[str]:
    """Return the addresses of a server, if all of them are permitted.

    Args:
        resolved: the addresses to which the server's name resolves.
        scheme, host, port: parts of the URL.
        allowed: private endpoints that the operator allows.

    Raises:
        ProviderRefused: an address is not public or the connection would not be encrypted, and
            the operator does not allow this server.
    """
    if allowed.names(host, port):
        return resolved
    addresses = [ip_address(text) for text in resolved]
    if all(allowed.holds(address) for address in addresses):
        return resolved
    if scheme != "https":
        raise refused(
            f"base_url is not encrypted: {host}:{port}",
            hint="use https://, or the operator can add it to RAG_ASSETS_PRIVATE_ENDPOINTS",
        )
    if not all(is_public(address) or allowed.holds(address) for address in addresses):
        raise refused(
            f"base_url leads to an address that is not public: {host}:{port}",
            hint="if this is intended, the operator can add it to RAG_ASSETS_PRIVATE_ENDPOINTS",
        )
    return resolved


def refused(message: str, *, hint: str | None = None) -> ProviderRefused:
    """Return the error for a request that was not sent."""
    error = ProviderRefused(message, hint=hint, fault="address")
    error.requests = 0
    return error
