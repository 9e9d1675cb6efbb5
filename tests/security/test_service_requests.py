"""Requests that another server might read differently, that are too large, or that ask for more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.installation import Installation
from tests.security.service_process import Answer, Served, answered, get, post, serving

HEALTH = "/health/live"
HOST = "Host: service.example\r\n"
QUESTION = b'{"query": "valve"}'


@pytest.fixture(scope="module")
def service(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "service.log"
    limits = {"RAG_ASSETS_SERVICE_RATE": "100000/minute"}
    with serving(shared_installation, log, **limits) as service:
        yield service


def is_problem(answer: Answer, status: int, kind: str) -> bool:
    return (
        answer.status == status
        and answer.headers["content-type"] == "application/problem+json"
        and answer.headers["cache-control"] == "no-store"
        and answer.json["type"] == f"urn:rag-assets:problem:{kind}"
        and answer.json["request_id"] == answer.headers["x-request-id"]
    )


def test_a_head_of_all_that_is_allowed_is_read(service: Served) -> None:
    for fields in (["a: b"] * 99, [f"a: {'b' * 65_000}"]):
        assert answered(service.sent(get(HEALTH, *fields))).status == 200
    assert answered(service.sent(get(f"{HEALTH}?{'a' * 65_000}"))).status == 200


@pytest.mark.parametrize(
    ("request_", "status", "kind"),
    [
        (get(HEALTH, *["a: b"] * 100), 431, "head-too-large"),
        (get(HEALTH, *["a:"] * 1_000_000), 431, "head-too-large"),
        (get(HEALTH, f"a: {'b' * 66_000}"), 431, "head-too-large"),
        (get(HEALTH, *[f"a{n}: {'b' * 5_000}" for n in range(20)]), 431, "head-too-large"),
        (b"GET / HTTP/1.1\r\na: " + b"b" * 70_000, 431, "head-too-large"),
        (b"GET / HTTP/1.1\r\n" + b"a" * 70_000, 431, "head-too-large"),
        (b"\r\n" * 70_000, 431, "head-too-large"),
        (b"GET /" + b"a" * 70_000, 414, "address-too-long"),
        (get(f"/{'a' * 66_000}"), 414, "address-too-long"),
    ],
    ids=["101", "short", "long", "sum", "value without end", "name", "blank", "url", "long url"],
)
def test_a_larger_head_is_refused(service: Served, request_: bytes, status: int, kind: str) -> None:
    received = service.sent(request_)
    assert is_problem(answered(received), status, kind)
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("around", [b";a=" + b"b" * 100_000, b"\r\na\r\n0\r\na: " + b"b" * 100_000])
def test_the_framing_of_a_body_is_limited_as_well(service: Served, around: bytes) -> None:
    # An unauthorized caller gets either status, depending on the order of bytes.
    for token, statuses in ((service.tokens["acme"], {431}), ("guessed", {401, 431})):
        head = post(b"", "Transfer-Encoding: chunked", f"Authorization: Bearer {token}")
        received = service.sent(head.replace(b"Content-Length: 0\r\n", b"") + b"1" + around)
        assert answered(received).status in statuses
        assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "request_",
    [
        post(b"0\r\n\r\n", "Transfer-Encoding: chunked"),
        post(b"abc", "Content-Length: 3"),
        post(b"abc", "Content-Length: 4"),
        post(b"").replace(b"Length: 0", b"Length: +3") + b"abc",
        post(b"").replace(b"Length: 0", b"Length: 3, 3") + b"abc",
        post(b"").replace(b"Length: 0", b"Length : 3") + b"abc",
        post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: xchunked") + b"0\r\n\r\n",
        post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: \x0bchunked"),
        post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding:\r\n chunked"),
        post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked, identity"),
        get(HEALTH, "Transfer-Encoding: chunked", version="1.0") + b"0\r\n\r\n",
        get(HEALTH).replace(b"\r\n", b"\n"),
        get(HEALTH, "a: b\rc: d"),
        get(HEALTH, "a: b\0c"),
        get(HEALTH, "a\0: b"),
        get(HEALTH, "Host: other.example"),
        get(HEALTH, "Authorization: Bearer a", "Authorization: Bearer b"),
        get(HEALTH).replace(HOST.encode(), b""),
        b"GET /health/live\r\n\r\n",
        get(HEALTH, version="1.9"),
        get("/\xe9"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT service.example:80 HTTP/1.1\r\n" + HOST.encode() + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    ],
)
def test_ambiguous_requests_are_refused(service: Served, request_: bytes) -> None:
    # The rest would be the smuggled request.
    received = service.sent(request_ + get("/metrics"))
    assert is_problem(answered(received), 400, "bad-request")
    assert received.count(b"HTTP/1.1 ") == 1


def test_a_trailer_is_no_header(service: Served) -> None:
    head = post(b"").replace(b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n")
    chunks = b"12\r\n" + QUESTION + b"\r\n0\r\n"
    trailer = f"Authorization: Bearer {service.tokens['acme']}\r\n\r\n".encode()
    assert answered(service.sent(head + chunks + trailer)).status == 401
    head = head.replace(b"Connection: close\r\n", trailer[:-2])
    received = service.sent(head + chunks + b"X-Request-ID: trailed\r\n\r\n" + get(HEALTH))
    assert received.count(b"HTTP/1.1 200 ") == 2
    assert b"trailed" not in received


def test_pipelined_requests_are_answered_in_their_order(service: Served) -> None:
    count = 500
    requests = [get(HEALTH, f"X-Request-ID: number-{n}") for n in range(count)]
    received = service.sent(b"".join(requests) + get(HEALTH, "Connection: close"))
    assert received.count(b"HTTP/1.1 200 ") == count + 1
    at = [received.index(f"x-request-id: number-{n}\r\n".encode()) for n in range(count)]
    assert at == sorted(at)


def test_what_is_no_request_spoils_no_answer_before_it(service: Served) -> None:
    received = service.sent(get(HEALTH) * 3 + b"no request\r\n\r\n")
    assert received.count(b"HTTP/1.1 200 ") == 3
    assert b"connection: close" in received.lower()


@pytest.mark.parametrize("protocol", ["websocket", "h2c"])
def test_an_upgrade_is_declined_and_ends_the_connection(service: Served, protocol: str) -> None:
    upgrade = get(HEALTH, "Connection: Upgrade", f"Upgrade: {protocol}")
    received = service.sent(upgrade + get("/metrics"))
    assert answered(received).status == 200
    assert answered(received).headers["connection"] == "close"
    assert received.count(b"HTTP/1.1 ") == 1


def test_a_body_is_requested_only_after_the_token_is_valid(service: Served) -> None:
    head = post(b"", "Expect: 100-continue").replace(b"Length: 0", b"Length: 18")
    assert service.sent(head).startswith(b"HTTP/1.1 401 ")
    known = head.replace(
        b"Expect", f"Authorization: Bearer {service.tokens['acme']}\r\nExpect".encode()
    )
    assert service.sent(known) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_old_versions_and_other_forms_of_an_address_are_served(service: Served) -> None:
    assert answered(service.sent(get(HEALTH, version="1.0"))).headers["connection"] == "close"
    assert answered(service.sent(get(f"http://evil.example{HEALTH}"))).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/rag/query/",
        "/rag/documents/",
        "/mcp/",
        "/mcp/acme/",
        "/health/live/",
        "/openapi.json/",
        "/docs",
        "/docs/",
        "/redoc",
        "//evil.example/",
        "/rag/../metrics",
        "/rag/%00",
        "/%ff%zz",
    ],
)
def test_there_are_no_redirects_and_no_host_is_repeated(service: Served, path: str) -> None:
    for method in (b"GET", b"POST"):
        request_ = get(path, "Connection: close").replace(b"GET", method)
        received = service.sent(request_.replace(b"service.example", b"evil.example"))
        assert is_problem(answered(received), 404, "not-found")
        assert b"evil" not in received


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 500_000,
        b'{"query":' * 100_000,
        b'{"query": "valve", "top_k": ' + b"9" * 100_000 + b"}",
        b'{"query": "valve", "top_k": 1e999}',
        b'{"query": "valve", "min_score": NaN}',
        b'{"query": "\xff\xfe"}',
        b'{"query": "\\ud800"}',
        b'{"query": "valve", "filters": {"tags": [' + b"1," * 5_000 + b"1]}}",
        b'{"query": "valve", "filters": {"tags": [' + b"1," * 300_000 + b"1]}}",
        b"{" + b",".join(b'"k%d":1' % n for n in range(70_000)) + b"}",
        b'["valve"]',
        b"",
    ],
)
def test_no_body_makes_the_service_fail_or_answer_at_length(service: Served, body: bytes) -> None:
    answer = service.asked(body)
    assert 400 <= answer.status < 500
    assert len(answer.body) < 10_000


def test_a_compressed_body_is_refused(service: Served) -> None:
    answer = service.asked(QUESTION, "Content-Encoding: gzip")
    assert is_problem(answer, 415, "unsupported-encoding")


def test_a_method_is_the_one_of_the_request_line(service: Served) -> None:
    override = get("/rag/query", "X-HTTP-Method-Override: POST")
    assert is_problem(answered(service.sent(override)), 405, "method-not-allowed")


def test_other_origins_share_no_answer_and_a_trace_is_refused(service: Served) -> None:
    fields = ("Origin: https://other.example", "Access-Control-Request-Method: GET")
    request = get(HEALTH, *fields, "Connection: close")
    for method in (b"GET", b"OPTIONS"):
        sent = service.sent(request.replace(b"GET", method, 1))
        assert b"access-control-allow" not in sent.lower()
    trace = service.sent(request.replace(b"GET", b"TRACE", 1))
    assert is_problem(answered(trace), 405, "method-not-allowed")
    assert b"other.example" not in trace


def test_what_is_described_is_made_once(service: Served) -> None:
    first, second = (answered(service.sent(get("/openapi.json"))) for _ in range(2))
    assert first.body == second.body
    assert first.json["openapi"].startswith("3.1")


def test_the_log_holds_nothing_of_what_was_sent(service: Served) -> None:
    secret = "never-to-be-logged"
    service.sent(get(f"/rag/documents?after={secret}", f"Authorization: Bearer {secret}"))
    service.sent(get(f"/{secret}", f"Host: {secret}"))
    service.sent(get(f"/{secret}", f"X-Forwarded-For: {secret}", f"Referer: {secret}"))
    service.asked(f'{{"query": "{secret}", "{secret}": "{secret}"}}'.encode())
    assert is_problem(answered(service.sent(get("/here"))), 404, "not-found")
    assert secret not in service.log.read_text()
