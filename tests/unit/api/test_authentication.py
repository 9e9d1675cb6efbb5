from ipaddress import ip_network

import pytest

from rag_assets.api.authentication import get_client_address, is_loopback
from rag_assets.api.settings import ServiceSettings
from rag_assets.common.errors import ConfigurationError

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "counts_for"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.7"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9", "198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["203.0.113.9, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["198.51.100.7, made up"], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),
        ("::ffff:10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64"),
        ("fd00::1", ["2001:db8:1:2::9"], "2001:db8:1:2::/64"),
        (None, ["198.51.100.7"], ""),
    ],
)
def test_only_proxies_are_believed(peer: str | None, forwarded: list[str], counts_for: str) -> None:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    client = None if peer is None else (peer, 50_000)
    scope = {"type": "http", "headers": headers, "client": client}
    assert get_client_address(scope, PROXIES) == counts_for


def test_loopback_is_what_only_this_machine_reaches() -> None:
    loopback = ["127.0.0.1", "127.8.8.8", "localhost", "::1"]
    others = ["0.0.0.0", "::", "192.0.2.1", "service.example"]
    assert [host for host in loopback + others if is_loopback(host)] == loopback


def test_proxies_are_addresses_or_networks() -> None:
    given = {"RAG_ASSETS_SERVICE_PROXIES": "10.0.0.7, fd00::/8"}
    proxies = ServiceSettings.from_environment(given).proxies
    assert proxies == (ip_network("10.0.0.7"), ip_network("fd00::/8"))
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_SERVICE_PROXIES"):
        ServiceSettings.from_environment({"RAG_ASSETS_SERVICE_PROXIES": "proxy.example"})
