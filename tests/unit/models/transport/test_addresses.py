from __future__ import annotations

from ipaddress import ip_address

import pytest

from rag_assets.common.errors import ConfigurationError, ProviderRefused
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.transport.addresses import is_public, normal_base_url, permitted


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "93.184.216.34",
        "2606:4700::1111",
        "::ffff:1.1.1.1",
        "64:ff9b::101:101",
        "2002:101:101::1",
    ],
)
def test_public_addresses(address):
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        # this machine, this network, none
        *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
        *("192.168.1.1", "100.64.0.1", "169.254.169.254", "192.0.0.8", "192.0.0.192", "198.18.0.1"),
        # documentation, former relays, multicast, reserved
        *("192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.1.2.3"),
        *("240.0.0.1", "255.255.255.255"),
        # the same in IPv6
        *("::", "::1", "fe80::1", "fe80::1%1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1"),
        *("2001:db8::1", "3fff::1", "100::1", "5f00::1", "4000::1", "64:ff9b:1::1"),
        # IPv4 within IPv6: mapped, compatible, NAT64, 6to4, Teredo
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"),
        *("64:ff9b::a00:1", "64:ff9b::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001::1"),
    ],
)
def test_addresses_that_are_not_public(address):
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://API.Example.org/v1/", "https://api.example.org/v1"),
        ("https://api.example.org", "https://api.example.org"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        ("https://[2606:4700::1111]:8443/", "https://[2606:4700::1111]:8443"),
    ],
)
def test_a_base_url_has_one_form(url, normal):
    assert normal_base_url(url) == normal
    assert normal_base_url(normal) == normal


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("api.example.org/v1", "must begin with https://"),
        ("ftp://api.example.org", "must begin with https://"),
        ("file:///etc/passwd", "must begin with https://"),
        ("https://", "must begin with https://"),
        ("https://user:hunter2@api.example.org", "no user and no password"),
        ("https://@api.example.org", "no user and no password"),
        ("https://api.example.org/v1?key=hunter2", "no query and no fragment"),
        ("https://api.example.org/v1#hunter2", "no query and no fragment"),
        ("https://api.example.org/?", "no query and no fragment"),
        ("https://api.example.org:99999/", "not a URL"),
        ("https://api.example.org:0/", "an invalid port"),
        ("https://[::1", "not a URL"),
        ("https://api.example.org\\@127.0.0.1/", "characters"),
        ("https://api.example.org/\r\nX-Header: 1", "characters"),
        ("https://api example.org/", "characters"),
        ("https://exämple.org/", "characters"),
    ],
)
def test_a_malformed_base_url_is_refused_without_being_quoted(url, message):
    with pytest.raises(ValueError, match=message) as caught:
        normal_base_url(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("allowed", "url", "resolved", "refusal"),
    [
        ("", ("https", "a.example", 443), ["1.1.1.1", "2606:4700::1111"], None),
        ("", ("https", "a.example", 443), ["10.0.0.1"], "not public"),
        ("", ("https", "a.example", 443), ["1.1.1.1", "10.0.0.1"], "not public"),
        ("", ("http", "a.example", 80), ["1.1.1.1"], "not encrypted"),
        ("a.example", ("http", "a.example", 80), ["1.1.1.1"], None),
        ("A.example:8080", ("http", "a.EXAMPLE", 8080), ["10.0.0.1"], None),
        ("a.example:8080", ("http", "a.example", 8081), ["10.0.0.1"], "not encrypted"),
        ("a.example:8080", ("https", "b.a.example", 8080), ["10.0.0.1"], "not public"),
        ("10.1.0.0/16", ("http", "a.example", 80), ["10.1.2.3"], None),
        ("10.1.0.0/16", ("https", "a.example", 443), ["10.1.2.3", "1.1.1.1"], None),
        ("10.1.0.0/16", ("http", "a.example", 80), ["10.1.2.3", "1.1.1.1"], "not encrypted"),
        ("10.1.0.0/16", ("https", "a.example", 443), ["10.2.2.3"], "not public"),
        ("[::1]:8080", ("http", "::1", 8080), ["::1"], None),
        ("fd00::/8, 127.0.0.1", ("http", "a.example", 80), ["fd00::1"], None),
        ("0.0.0.0/0", ("https", "a.example", 443), ["::ffff:10.0.0.1"], "not public"),
    ],
)
def test_what_the_operator_lets_through(allowed, url, resolved, refusal):
    scheme, host, port = url

    def judge():
        return permitted(
            resolved, scheme=scheme, host=host, port=port, allowed=PrivateEndpoints.parse(allowed)
        )

    if refusal is None:
        assert judge() == resolved
    else:
        with pytest.raises(ProviderRefused, match=refusal) as caught:
            judge()
        assert "RAG_ASSETS_PRIVATE_ENDPOINTS" in caught.value.hint
        assert caught.value.requests == 0


@pytest.mark.parametrize(
    "text",
    ["http://a.example", "a.example:0", "a.example:99999", "10.0.0.0/33", "10.0.0.1/8", "a b"],
)
def test_a_malformed_list_of_private_endpoints_is_refused(text):
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_PRIVATE_ENDPOINTS") as caught:
        PrivateEndpoints.parse(f"localhost,{text}")
    assert text in caught.value.message
