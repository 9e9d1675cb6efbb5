"""On real sockets: what a tenant's base_url can and cannot make this process connect to."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import MalformedResponse, ProviderRefused, ProviderUnavailable
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.transport.http_client import providers_client, resolve, tenants_client

LOOPBACK = PrivateEndpoints.parse("127.0.0.1/32")


@pytest.fixture(scope="module")
def second_server() -> Iterator[HTTPServer]:
    with HTTPServer(host="127.0.0.2") as server:
        yield server


@pytest.fixture
def inside(second_server: HTTPServer) -> HTTPServer:
    """A server that nobody outside should reach, at an address that is not let through."""
    second_server.clear()
    second_server.expect_request("/").respond_with_data("a secret of the inside")
    return second_server


def answers(*answers: list[str]):
    """A resolver that answers otherwise each time, as a rebinding name does, and counts."""
    left = list(answers)

    async def resolver(host: str, port: int) -> list[str]:
        resolver.asked.append(host)
        return left.pop(0) if len(left) > 1 else left[0]

    resolver.asked = []
    return resolver


def get(url: str, *, path: str = "/", times: int = 1, allowed=LOOPBACK, **options):
    async def run() -> list[httpx2.Response]:
        async with tenants_client(url, allowed, **options) as client:
            return [
                await client.get(url + path, headers={"connection": "close"}) for _ in range(times)
            ]

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
        async with tenants_client(url, LOOPBACK, resolver=resolver) as client:
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
    """By the system's own resolver, which understands them all."""
    url = f"https://{host}:{httpserver.port}"
    with pytest.raises((ProviderRefused, ProviderUnavailable)) as caught:
        get(url, allowed=PrivateEndpoints())
    assert any(why in caught.value.message for why in ("not public", "no address", "not a URL"))
    assert httpserver.log == []


def test_the_system_understands_unusual_notations():
    """Else the test above would show nothing: they do lead to this machine."""
    for host in ("2130706433", "0x7f000001", "017700000001", "127.1"):
        assert asyncio.run(resolve(host, 80)) == ["127.0.0.1"]


def test_a_name_without_addresses_may_get_some_later():
    with pytest.raises(ProviderUnavailable, match=r"nowhere\.invalid"):
        get("https://nowhere.invalid")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(httpserver, inside, status):
    target = f"http://127.0.0.2:{inside.port}/"
    httpserver.expect_request("/").respond_with_data(
        "see there", status=status, headers={"Location": target}
    )
    response = get(f"http://127.0.0.1:{httpserver.port}")[0]
    assert response.status_code == status
    assert "location" not in response.headers
    assert inside.log == []


def test_a_request_to_another_server_is_held_back(httpserver, inside):
    async def run() -> None:
        async with tenants_client(f"http://127.0.0.1:{httpserver.port}", LOOPBACK) as client:
            await client.get(f"http://127.0.0.2:{inside.port}/")

    with pytest.raises(ProviderRefused, match="another server"):
        asyncio.run(run())
    assert inside.log == []


def test_proxies_and_passwords_of_the_environment_are_not_for_tenants(
    httpserver, inside, monkeypatch, tmp_path
):
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
        async with providers_client("http://provider.example") as client:
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
    httpserver.expect_request("/").respond_with_data(
        b"\x1f\x8b", headers={"Content-Encoding": "gzip"}
    )
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
        async with tenants_client(url, LOOPBACK) as client:
            headers = {"Authorization": "Bearer key", "OpenAI-Organization": "org", "Cookie": "a=b"}
            headers |= {"api-key": "other", "x-goog-api-key": "other"}
            await client.get(url, headers=headers)

    asyncio.run(run())
    sent = {name.lower() for name, _ in httpserver.log[0][0].headers.items()}
    assert "authorization" in sent
    assert not sent & {"openai-organization", "cookie", "api-key", "x-goog-api-key"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Of a name, but signed by nobody."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tls.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("tls.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


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
    """As if a public authority had signed it."""
    import httpcore2

    monkeypatch.setattr(
        httpcore2,
        "default_ssl_context",
        lambda **_: ssl.create_default_context(cafile=str(certificate)),
    )


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
