"""Private endpoints that the operator allows for tenants' models."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Self, TypeAlias

from rag_assets.common.errors import ConfigurationError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_HOST = re.compile(
    r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>[0-9]{1,5}))?"
)
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class PrivateEndpoints:
    """Endpoints that the operator allows although they are private or unencrypted."""

    hosts: frozenset[tuple[str, int | None]] = frozenset()
    """Names or literal addresses in lower case, each with its port; None for any port."""
    networks: tuple[Network, ...] = ()
    """Ranges of addresses that are allowed under any name and port."""
    identity_hosts: frozenset[str] = frozenset()
    """Names, in lower case, of servers that may receive a token of the cloud identity that this
    installation runs under."""

    @classmethod
    def parse(cls, text: str, identity_hosts: str = "") -> Self:
        """Parse two comma-separated lists: `host`, `host:port` or CIDR networks; and host names."""
        hosts: set[tuple[str, int | None]] = set()
        networks: list[Network] = []
        for item in filter(None, map(str.strip, text.split(","))):
            if "/" in item:
                networks.append(_parse_network(item))
            else:
                hosts.add(_parse_host(item))
        names = filter(None, map(str.strip, identity_hosts.lower().split(",")))
        return cls(frozenset(hosts), tuple(networks), frozenset(names))

    def allows_name(self, host: str, port: int) -> bool:
        """Return whether a host is allowed by name, regardless of its addresses."""
        name = host.lower()
        return (name, port) in self.hosts or (name, None) in self.hosts

    def allows_address(self, address: Address) -> bool:
        """Return whether an IP address lies in an allowed network."""
        return any(address in network for network in self.networks)


def _parse_network(item: str) -> Network:
    try:
        return ip_network(item)
    except ValueError:
        raise _build_error(item) from None


def _parse_host(item: str) -> tuple[str, int | None]:
    match = _HOST.fullmatch(item)
    if match is None:
        raise _build_error(item)
    port = int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port <= _LAST_PORT:
        raise _build_error(item)
    return (match["v6"] or match["name"]).lower(), port


def _build_error(item: str) -> ConfigurationError:
    return ConfigurationError(
        f"RAG_ASSETS_PRIVATE_ENDPOINTS has an item that is not an endpoint: {item}",
        hint="separate items by commas; each item must be a host, host:port, or a network such as"
        " 10.1.0.0/16",
    )
