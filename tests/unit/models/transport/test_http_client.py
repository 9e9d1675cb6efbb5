"""The client connects only to permitted servers, sends no foreign header, and limits responses."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from ipaddress import ip_address

import httpx2
import pytest
from cryptography import x509
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import (
    ConfigurationError,
    MalformedResponse,
    ProviderRefused,
    ProviderUnavailable,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.transport.http_client import (
    build_provider_client,
    build_tenant_client,
    is_public,
    require_permitted,
    resolve,
)
from rag_assets.models.transport.settings import normalize_base_url
from tests.unit.models.conftest import write_certificate

LOOPBACK = PrivateEndpoints.parse("127.0.0.1/32")


@pytest.fixture(scope="module")
def second_server() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.2") as server:
        yield server


@pytest.fixture
def inside(second_server: HTTPServer) -> HTTPServer:
    """Return an internal server, whose address is not permitted."""
    second_server.clear()
    second_server.expect_request("/").respond_with_data("a secret of the inside")
    return second_server


def answers(*answers: list[str]):
    """Return a resolver with changing answers, like a rebinding name, which counts its calls."""
    left = list(answers)

    async def resolver(host: str, port: int) -> list[str]:
        resolver.asked.append(host)
        return left.pop(0) if len(left) > 1 else left[0]

    resolver.asked = []
    return resolver


def get(url: str, *, path: str = "/", times: int = 1, allowed=LOOPBACK, **options):
    async def run() -> list[httpx2.Response]:
        async with build_tenant_client(url, allowed, **options) as client:
            headers = {"connection": "close"}
            return [await client.get(url + path, headers=headers) for _ in range(times)]

    return asyncio.run(run())


def test_a_rebinding_name_stays_pinned_to_the_validated_address(httpserver, inside):
    httpserver.expect_request("/").respond_with_data("outside")
    resolver = answers(["127.0.0.1"], ["127.0.0.2"])
    url = f"http://rebinding.example:{httpserver.port}"
    responses = get(url, times=3, resolver=resolver)
    assert [response.text for response in responses] == ["outside"] * 3
    assert resolver.asked == ["rebinding.example"]
    assert inside.log == []
    # A request that another test gave up may still arrive.
    hosts = {request.headers["Host"] for request, _ in httpserver.log if request.path == "/"}
    assert hosts == {f"rebinding.example:{httpserver.port}"}


def test_a_name_is_validated_again_when_its_server_is_unreachable(inside):
    resolver = answers(["127.0.0.1"], ["127.0.0.2"])
    url = f"http://rebinding.example:{inside.port}"

    async def run() -> None:
        async with build_tenant_client(url, LOOPBACK, resolver=resolver) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get(url)
            with pytest.raises(ProviderRefused, match=r"rebinding\.example"):
                await client.get(url)

    asyncio.run(run())
    assert len(resolver.asked) == 2
    assert inside.log == []


def test_of_several_addresses_the_next_is_tried(httpserver):
    httpserver.expect_request("/").respond_with_data("here")
    allowed = PrivateEndpoints.parse("127.0.0.0/8")
    resolver = answers(["127.0.0.3", "127.0.0.1"])
    url = f"http://two.example:{httpserver.port}"
    assert get(url, allowed=allowed, resolver=resolver)[0].text == "here"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001"),
        *("0177.0.0.01", "127.1", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]"),
        *("[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "169.254.169.254"),
        *("localhost.", "LOCALHOST"),
    ],
)
def test_this_machine_is_not_reached_however_it_is_written(httpserver, host):
    """The system's own resolver understands all these notations."""
    url = f"https://{host}:{httpserver.port}"
    with pytest.raises((ProviderRefused, ProviderUnavailable)) as caught:
        get(url, allowed=PrivateEndpoints())
    assert any(why in caught.value.message for why in ("not public", "no address", "not a URL"))
    assert httpserver.log == []


def test_the_system_understands_unusual_notations():
    """If the system did not resolve these notations, the test above would prove nothing."""
    for host in ("2130706433", "0x7f000001", "017700000001", "127.1"):
        assert asyncio.run(resolve(host, 80)) == ["127.0.0.1"]


def test_a_name_without_addresses_may_get_some_later():
    with pytest.raises(ProviderUnavailable, match=r"nowhere\.invalid"):
        get("https://nowhere.invalid")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(httpserver, inside, status):
    target = f"http://127.0.0.2:{inside.port}/"
    headers = {"Location": target}
    httpserver.expect_request("/").respond_with_data("there", status=status, headers=headers)
    response = get(f"http://127.0.0.1:{httpserver.port}")[0]
    assert response.status_code == status
    assert "location" not in response.headers
    assert inside.log == []


def test_a_request_to_another_server_is_held_back(httpserver, inside):
    async def run() -> None:
        async with build_tenant_client(f"http://127.0.0.1:{httpserver.port}", LOOPBACK) as client:
            await client.get(f"http://127.0.0.2:{inside.port}/")

    with pytest.raises(ProviderRefused, match="its server is not the server of base_url"):
        asyncio.run(run())
    assert inside.log == []


def test_proxies_of_the_environment_are_not_for_tenants(httpserver, inside, monkeypatch, tmp_path):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.2:{inside.port}")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login operator password hunter2\n")
    monkeypatch.setenv("NETRC", str(netrc))
    httpserver.expect_request("/").respond_with_data("direct")
    assert get(f"http://127.0.0.1:{httpserver.port}")[0].text == "direct"
    assert inside.log == []
    assert "Authorization" not in httpserver.log[0][0].headers


def test_a_providers_own_server_is_reached_through_the_operators_proxy(httpserver, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{httpserver.port}")
    monkeypatch.setenv("no_proxy", "")
    httpserver.expect_request("/v1").respond_with_data("by the proxy")

    async def run() -> str:
        async with build_provider_client("http://provider.example") as client:
            return (await client.get("http://provider.example/v1")).text

    assert asyncio.run(run()) == "by the proxy"


def test_a_body_is_read_no_further_than_its_bound(httpserver):
    def endless(request: Request) -> Response:
        return Response((b"0" * 1024 for _ in range(1_000_000)), mimetype="application/json")

    httpserver.expect_request("/").respond_with_handler(endless)
    with pytest.raises(MalformedResponse, match="longer than 65,536 bytes"):
        get(f"http://127.0.0.1:{httpserver.port}", most_bytes=65_536)
    httpserver.expect_request("/fits").respond_with_data(b"0" * 65_536)
    assert len(get(f"http://127.0.0.1:{httpserver.port}", path="/fits")[0].content) == 65_536


def test_a_compressed_body_is_not_unpacked(httpserver):
    headers = {"Content-Encoding": "gzip"}
    httpserver.expect_request("/").respond_with_data(b"\x1f\x8b", headers=headers)
    with pytest.raises(MalformedResponse, match="compressed"):
        get(f"http://127.0.0.1:{httpserver.port}")
    assert httpserver.log[0][0].headers["Accept-Encoding"] == "identity"


def test_a_refusal_is_one_however_long_or_packed(httpserver):
    url = f"http://127.0.0.1:{httpserver.port}"
    long = b"0" * 10_000_000
    httpserver.expect_request("/long").respond_with_data(long, status=503)
    response = get(url, path="/long")[0]
    assert response.status_code == 503
    assert len(response.content) <= 65_536
    headers = {"Content-Encoding": "gzip", "Retry-After": "3"}
    httpserver.expect_request("/gzip").respond_with_data(long, status=503, headers=headers)
    response = get(url, path="/gzip")[0]
    assert (response.status_code, response.content) == (503, b"")
    assert response.headers["Retry-After"] == "3"


def test_only_headers_that_a_provider_needs_go_out(httpserver):
    httpserver.expect_request("/").respond_with_data("ok")
    url = f"http://127.0.0.1:{httpserver.port}"

    async def run() -> None:
        async with build_tenant_client(url, LOOPBACK) as client:
            headers = {"Authorization": "Bearer key", "OpenAI-Organization": "org", "Cookie": "a=b"}
            headers |= {"api-key": "other", "x-goog-api-key": "other"}
            await client.get(url, headers=headers)

    asyncio.run(run())
    sent = {name.lower() for name, _ in httpserver.log[0][0].headers.items()}
    assert "authorization" in sent
    assert not sent & {"openai-organization", "cookie", "api-key", "x-goog-api-key"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Create a certificate that no authority has signed."""
    return write_certificate(tmp_path_factory.mktemp("tls"), x509.DNSName("tls.example"))


def test_the_certificate_is_verified_against_the_name_not_the_address(certificate, monkeypatch):
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    with HTTPServer(host="127.0.0.1", ssl_context=context) as server:
        server.expect_request("/").respond_with_data("encrypted")
        url = f"https://tls.example:{server.port}"
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            get(url, resolver=answers(["127.0.0.1"]))
        assert names == ["tls.example"]
        assert server.log == []
        _trust(certificate, monkeypatch)
        assert get(url, resolver=answers(["127.0.0.1"]))[0].text == "encrypted"
        other = f"https://other.example:{server.port}"
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            get(other, resolver=answers(["127.0.0.1"]))


def _trust(certificate, monkeypatch) -> None:
    """Trust a certificate as if a public authority had signed it."""
    import httpcore2

    context = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(httpcore2, "default_ssl_context", lambda **_: context)


def test_clients_in_two_loops_do_not_disturb_each_other(httpserver):
    httpserver.expect_request("/").respond_with_data("ok")
    url = f"http://127.0.0.1:{httpserver.port}"
    seen: list[str] = []
    threads = [threading.Thread(target=lambda: seen.append(get(url)[0].text)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["ok", "ok"]


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101",
     "2002:101:101::1"],
)  # fmt: skip
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
    assert normalize_base_url(url) == normal
    assert normalize_base_url(normal) == normal


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("api.example.org/v1", "must begin with https://"),
        ("ftp://api.example.org", "must begin with https://"),
        ("file:///etc/passwd", "must begin with https://"),
        ("https://", "must begin with https://"),
        ("https://user:hunter2@api.example.org", "a user or a password"),
        ("https://@api.example.org", "a user or a password"),
        ("https://api.example.org/v1?key=hunter2", "a query .* or a fragment"),
        ("https://api.example.org/v1#hunter2", "a query .* or a fragment"),
        ("https://api.example.org/?", "a query .* or a fragment"),
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
        normalize_base_url(url)
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
        return require_permitted(
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
