"""The embedded servers on a machine with other users do nothing without the password."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.runtime.elasticsearch_install import OWNER, SEARCHER, Access
from rag_assets.runtime.net import send_get
from rag_assets.runtime.postgres import EmbeddedPostgres
from rag_assets.storage.index.store import StoreConfig, open_store
from tests.guarded_server import (
    DOCUMENT,
    INDEX,
    access_to,
    authorization,
    basic,
    guarded_server,
    require_untouched,
)
from tests.raw_http import Target, statuses_in
from tests.servers import server_directory

NOBODY = 65_534
REFUSED = {400, 401, 403}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedElasticsearch]:
    with guarded_server() as server:
        yield server


@pytest.fixture(scope="module")
def target(server: EmbeddedElasticsearch) -> Target:
    return Target.of(server.url)


@pytest.fixture(scope="module")
def access(server: EmbeddedElasticsearch) -> Access:
    return access_to(server)


@pytest.fixture(autouse=True)
def nothing_is_done(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "server" in request.fixturenames:
        require_untouched(request.getfixturevalue("server"))


# Without the password


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "X"]
)
@pytest.mark.parametrize(
    "path",
    ["/", f"/{INDEX}", f"/{INDEX}/_close", f"/{INDEX}/_doc/9", "/_search", "/_no/such", "*", "//"],
)
def test_no_method_and_no_path_does_anything_without_the_password(
    target: Target, method: str, path: str
) -> None:
    assert target.status(target.request(method, path, body=DOCUMENT)) == 401


def test_no_other_account_is_let_in(target: Target, access: Access) -> None:
    right = access.get_authorization_header()
    tries = [
        "",
        "Basic",
        "Basic ",
        right[:-1],
        right + " ",
        right.lower(),
        right.replace("Basic", "basic"),
        right.replace("Basic", "Bearer"),
        right.replace("Basic", "ApiKey"),
        f"{right}, {right}",
        "Basic " + base64.b64encode(f"{SEARCHER}:{access.owner}".encode()).decode(),
        "Basic " + base64.b64encode(f"{OWNER}:{access.searcher}".encode()).decode(),
        "Basic " + base64.b64encode(f"{OWNER}:".encode()).decode(),
    ]
    for value in tries:
        # White space after a header's value is not part of the value.
        wanted = {200} if value.strip() == right else {400, 401}
        data = target.request("GET", "/_cluster/health", authorization(value))
        assert target.status(data) in wanted, value
    twice = [authorization(right), authorization("Basic x")]
    for headers in (twice, twice[::-1]):
        assert target.status(target.request("GET", "/_cluster/health", *headers)) == 401
    named = target.request("GET", f"/_cluster/health?authorization={right.replace(' ', '+')}")
    assert target.status(named) == 401


def test_it_is_refused_before_its_body_has_come(target: Target) -> None:
    headers = ["Content-Type: application/json", "Content-Length: 10000000"]
    assert target.status(target.request("POST", f"/{INDEX}/_doc", *headers)) == 401
    waiting = target.send(target.request("PUT", "/evil", "Expect: 100-continue", *headers))
    assert statuses_in(waiting) == [401], "no body is asked for"


def test_a_preflight_is_refused(target: Target) -> None:
    asked = ["Origin: https://evil.example", "Access-Control-Request-Method: DELETE"]
    answer = target.send(target.request("OPTIONS", f"/{INDEX}", *asked))
    assert statuses_in(answer) == [401]
    assert b"access-control" not in answer.lower()


def test_no_browser_prompts_its_user_for_the_password(target: Target) -> None:
    answer = target.send(target.request("GET", "/")).lower()
    assert b"www-authenticate: rag-assets" in answer
    assert b"basic" not in answer


def test_each_of_pipelined_requests_needs_the_password(target: Target, access: Access) -> None:
    own = authorization(access.get_authorization_header())
    ours = target.request("GET", "/_cluster/health", own)
    theirs = target.request("PUT", "/evil", body=b"{}")
    assert statuses_in(target.send(ours + theirs + ours, answers=3)) == [200, 401, 200]
    assert statuses_in(target.send(theirs + theirs, answers=2)) == [401, 401]


def test_chunked_bodies_hide_no_request(target: Target, access: Access) -> None:
    chunked = ["Transfer-Encoding: chunked", "Content-Type: application/json"]
    size = f"{len(DOCUMENT):x}\r\n".encode()
    body = size + DOCUMENT + b"\r\n0\r\n\r\n"
    request = target.request("POST", f"/{INDEX}/_doc", *chunked) + body
    assert target.status(request) == 401
    inner = target.request("PUT", "/evil")
    lengths = [
        "Transfer-Encoding: chunked",
        "Content-Length: 5",
        authorization(access.get_authorization_header()),
    ]
    smuggled = target.request("POST", f"/{INDEX}/_doc", *lengths) + b"0\r\n\r\n" + inner
    assert set(statuses_in(target.send(smuggled, answers=3))) <= REFUSED


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"PUT /evil\r\n\r\n",
        b"PUT /evil HTTP/9.9\r\nno colon\r\n\r\n",
        b"PUT /evil HTTP/1.1\r\nHost : x\r\n\r\n",
        b"PUT /evil HTTP/1.1\r\n\x00: x\r\n\r\n",
        b"PUT /evil HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"PUT /" + b"e" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"PUT /evil HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"PUT /%zz%ff HTTP/1.1\r\n\r\n",
        b"PUT /evil HTTP/1.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64 + b"\r\n\r\n",
        b"PUT http://evil.example/evil HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    ],
)
def test_what_is_malformed_or_too_large_is_refused(target: Target, data: bytes) -> None:
    statuses = statuses_in(target.send(data))
    assert set(statuses) <= REFUSED
    assert send_get(target.port, "/_cluster/health")[0] == 401, "and the server goes on"


# With the password, from a place that should not have it


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:1",
        "0.0.0.0:{port}",
        "evil.example:{port}",
        "localhost.evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "evil.example@127.0.0.1:{port}",
    ],
)
def test_another_host_is_refused_for_every_account(
    target: Target, access: Access, host: str
) -> None:
    named = host.format(port=target.port)
    own = authorization(access.get_authorization_header())
    assert target.status(target.request("GET", "/_cluster/health", own, host=named)) == 403
    assert target.status(target.request("GET", "/_cluster/health", host=named)) == 401


def test_two_hosts_are_refused(target: Target, access: Access) -> None:
    headers = [authorization(access.get_authorization_header()), "Host: evil.example"]
    assert target.status(target.request("GET", "/_cluster/health", *headers)) == 403


@pytest.mark.parametrize(
    "header",
    [
        "Origin: https://evil.example",
        "Origin: null",
        "Origin: ",
        "Origin: http://127.0.0.1",
        "Origin: http://localhost:3000",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ],
)
def test_another_sites_page_is_refused_whatever_it_knows(
    target: Target, access: Access, header: str
) -> None:
    own = authorization(access.get_authorization_header())
    data = target.request("POST", f"/{INDEX}/_close", header, own, body=b"{}")
    assert target.status(data) == 403


def test_the_owner_is_answered_at_every_name_of_the_loopback(
    target: Target, access: Access
) -> None:
    own = authorization(access.get_authorization_header())
    for name in ("127.0.0.1", "localhost", "[::1]"):
        host = f"{name}:{target.port}"
        plain = target.request("GET", "/_cluster/health", own, host=host)
        page = target.request("GET", "/_cluster/health", own, f"Origin: http://{host}", host=host)
        assert [target.status(plain), target.status(page)] == [200, 200]


# What is open, and what others can see of it


def test_nothing_but_the_http_port_listens(server: EmbeddedElasticsearch, target: Target) -> None:
    record = server.process.find()
    assert record is not None
    opened = psutil.Process(record.pid).net_connections(kind="all")
    listening = [c.laddr for c in opened if c.status == psutil.CONN_LISTEN]
    assert [(at.ip.removeprefix("::ffff:"), at.port) for at in listening] == [
        ("127.0.0.1", target.port)
    ]


def test_the_passwords_are_in_one_private_file_only(
    server: EmbeddedElasticsearch, access: Access, target: Target
) -> None:
    target.send(target.request("GET", "/evil", basic(f"{OWNER}:wrong")))
    secrets = [
        access.owner,
        access.searcher,
        access.get_authorization_header(),
        access.get_authorization_header(SEARCHER),
    ]
    for process in psutil.process_iter(["cmdline"]):
        arguments = " ".join(process.info["cmdline"] or [])
        assert not any(secret in arguments for secret in secrets), "everybody can read arguments"
    holding = [
        path
        for path in server.directory.rglob("*")
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets)
    ]
    assert holding == [server.directory / "server.json"]
    assert holding[0].stat().st_mode & 0o777 == 0o600
    digests = next(server.directory.glob("*/config/http-guard.properties"))
    assert digests.stat().st_mode & 0o777 == 0o600
    assert not any(secret in repr(access) for secret in secrets)


def test_a_refused_account_is_one_clear_error(
    server: EmbeddedElasticsearch, access: Access
) -> None:
    wrong = server.url.replace(access.owner, "wrong")
    store = open_store(StoreConfig(wrong))
    with pytest.raises(ServiceUnavailable, match="refuses the account") as caught:
        store.indexes.vector_length(INDEX)
    store.close()
    assert "wrong" not in caught.value.message
    assert "RAG_ASSETS_ELASTICSEARCH_URL" in (caught.value.hint or "")


# Postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmbeddedPostgres]:
    with server_directory() as directory:
        server = EmbeddedPostgres(directory / "postgres")
        server.start()
        yield server


def test_postgres_listens_on_the_loopback_only_and_requires_a_password(
    postgres: EmbeddedPostgres,
) -> None:
    record = postgres.process.find()
    assert record is not None
    opened = psutil.Process(record.pid).net_connections(kind="all")
    listening = [c for c in opened if c.status == psutil.CONN_LISTEN]
    assert [(c.laddr.ip, c.laddr.port) for c in listening] == [("127.0.0.1", record.port)]
    assert [c for c in opened if isinstance(c.laddr, str) and c.laddr] == [], "no Unix socket"
    with psycopg.connect(postgres.superuser_url) as connection:
        rules = connection.execute("SELECT auth_method FROM pg_hba_file_rules").fetchall()
    assert {method for (method,) in rules} == {"scram-sha-256"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_another_user_of_the_machine_gets_nothing(
    server: EmbeddedElasticsearch, postgres: EmbeddedPostgres, target: Target
) -> None:
    record = postgres.process.find()
    assert record is not None
    as_nobody = f"""
for path in {[str(server.directory / "server.json"), str(postgres.directory / "server.json")]}:
    try:
        print(open(path).read())
    except PermissionError:
        print("closed")
import http.client, socket
asked = http.client.HTTPConnection("127.0.0.1", {target.port}, timeout=5)
asked.request("GET", "/_search")
print(asked.getresponse().status)
"""
    python = Path("/usr/bin/python3")
    if not python.is_file():
        pytest.skip("no Python that another user may run")
    done = subprocess.run(
        [python, "-c", as_nobody], user=NOBODY, capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.split() == ["closed", "closed", "401"]
