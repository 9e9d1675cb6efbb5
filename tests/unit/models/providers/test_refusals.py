"""Refusals, malformed responses and secrets, with the SDK of every provider."""

import json
import logging
import re
import traceback
from typing import Any

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import (
    InputRejected,
    MalformedResponse,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from tests.unit.models.providers.conftest import KEY, Ask, no_key

QUOTED = f"{KEY} one"
ANY = re.compile(".*")
OWN = {"model": "own", "dimensions": 5, "credentials": no_key}
AWS_KEY = SecretStr("AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
OPTIONS: dict[str, dict[str, Any]] = {
    "azure": {"model": "text-embedding-3-large"},
    "bedrock": {"connection": {"region": "eu-central-1"}, "credentials": lambda: AWS_KEY},
    "openai-compatible": {"model": "e5", "dimensions": 2},
    "cohere": {},
    "gemini": {},
    "voyage": {},
    "ollama": OWN,
    "vllm": OWN,
}
"""What an embedder needs besides its provider and address."""


def openai(code: str | None = None, kind: str | None = None) -> dict[str, Any]:
    return {"error": {"message": QUOTED, "type": kind, "param": None, "code": code}}


def gemini(status: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": 0, "message": QUOTED, "status": status, "details": details}}


def detail(kind: str, **fields: Any) -> dict[str, Any]:
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def quota(name: str) -> dict[str, Any]:
    return detail("QuotaFailure", violations=[{"quotaId": name, "quotaValue": "1000"}])


def amazon(name: str) -> dict[str, str]:
    return {"X-Amzn-ErrorType": f"{name}:http://internal.amazon.com/coral/com.amazon.bedrock/"}


RETRY = detail("RetryInfo", retryDelay="37s")
INVALID_KEY = detail("ErrorInfo", reason="API_KEY_INVALID")
PER_MINUTE, PER_DAY = (quota(f"EmbedRequestsPer{unit}PerProject") for unit in ("Minute", "Day"))
AWAY = {"Location": "http://127.0.0.1:1/"}
SAID = {"message": QUOTED}
REJECTED = (InputRejected, "rejects a text", None)
KEY_REFUSED = (ProviderRefused, "the key", None)
NO_MODEL = (ProviderRefused, "no such model", None)
EXHAUSTED = (ProviderRefused, "exhausted", None)
REDIRECTED = (ProviderRefused, "redirects", None)
REFUSED = (ProviderRefused, "refuses the request", None)


def limited(seconds: float | None = None) -> tuple[type[Exception], str, float | None]:
    return ProviderUnavailable, "limits requests", seconds


def unavailable(
    status: int, seconds: float | None = None
) -> tuple[type[Exception], str, float | None]:
    return ProviderUnavailable, f"HTTP {status}", seconds


REFUSALS: list[tuple[str, int, Any, dict[str, str], tuple[type[Exception], str, float | None]]] = [
    ("azure", 401, openai("401"), {}, KEY_REFUSED),
    ("azure", 404, openai("DeploymentNotFound"), {}, NO_MODEL),
    ("azure", 429, openai("429"), {"Retry-After": "9"}, limited(9.0)),
    ("azure", 403, openai("insufficient_quota"), {}, EXHAUSTED),
    ("azure", 400, openai("content_filter"), {}, REJECTED),
    ("azure", 503, openai("ServiceUnavailable"), {}, unavailable(503)),
    ("bedrock", 400, SAID, amazon("ValidationException"), REJECTED),
    ("bedrock", 403, SAID, amazon("AccessDeniedException"), KEY_REFUSED),
    ("bedrock", 400, SAID, amazon("ExpiredTokenException"), KEY_REFUSED),
    ("bedrock", 404, SAID, amazon("ResourceNotFoundException"), NO_MODEL),
    ("bedrock", 429, SAID, amazon("ThrottlingException") | {"Retry-After": "4"}, limited(4.0)),
    ("bedrock", 400, SAID, amazon("ServiceQuotaExceededException"), limited()),
    ("bedrock", 408, SAID, amazon("ModelTimeoutException"), unavailable(408)),
    ("bedrock", 424, SAID, amazon("ModelErrorException"), unavailable(503)),
    ("bedrock", 424, SAID, amazon("ModelStreamErrorException"), unavailable(503)),
    ("bedrock", 500, SAID, amazon("InternalServerException"), unavailable(500)),
    ("bedrock", 302, SAID, amazon("") | AWAY, REDIRECTED),
    ("cohere", 400, SAID, {}, REJECTED),
    ("cohere", 422, SAID, {}, REJECTED),
    ("cohere", 401, SAID, {}, KEY_REFUSED),
    ("cohere", 402, SAID, {}, EXHAUSTED),
    ("cohere", 404, SAID, {}, NO_MODEL),
    ("cohere", 429, SAID, {"Retry-After": "7"}, limited(7.0)),
    ("cohere", 499, SAID, {}, REFUSED),
    ("cohere", 500, SAID, {}, unavailable(500)),
    ("cohere", 302, SAID, AWAY, REDIRECTED),
    ("gemini", 400, gemini("INVALID_ARGUMENT"), {}, REJECTED),
    ("gemini", 400, gemini("INVALID_ARGUMENT", INVALID_KEY), {}, KEY_REFUSED),
    ("gemini", 403, gemini("PERMISSION_DENIED"), {}, KEY_REFUSED),
    ("gemini", 404, gemini("NOT_FOUND"), {}, NO_MODEL),
    ("gemini", 429, gemini("RESOURCE_EXHAUSTED", RETRY), {}, limited(37.0)),
    ("gemini", 429, gemini("RESOURCE_EXHAUSTED", PER_MINUTE, RETRY), {"Retry-After": "1"},
     limited(37.0)),
    ("gemini", 429, gemini("RESOURCE_EXHAUSTED", PER_DAY, RETRY), {}, EXHAUSTED),
    ("gemini", 429, "slow", {"Retry-After": "2"}, limited(2.0)),
    ("gemini", 500, gemini("INTERNAL"), {}, unavailable(500)),
    ("gemini", 503, [gemini("UNAVAILABLE", RETRY)], {}, unavailable(503, 37.0)),
    ("gemini", 302, "moved", AWAY, REDIRECTED),
    ("gemini", 418, {"error": "a teapot"}, {}, REFUSED),
    ("gemini", 500, {"error": {"details": "none"}}, {}, unavailable(500)),
    ("ollama", 404, openai(kind="not_found_error"), {}, NO_MODEL),
    ("ollama", 400, {"error": SAID}, {}, REJECTED),
    ("openai-compatible", 400, openai(), {}, REJECTED),
    ("openai-compatible", 400, openai("billing_hard_limit_reached"), {}, EXHAUSTED),
    ("openai-compatible", 401, openai("invalid_api_key"), {}, KEY_REFUSED),
    ("openai-compatible", 403, openai(), {}, KEY_REFUSED),
    ("openai-compatible", 404, openai("model_not_found"), {}, NO_MODEL),
    ("openai-compatible", 413, openai(), {}, REJECTED),
    ("openai-compatible", 422, openai(), {}, REJECTED),
    ("openai-compatible", 429, openai(), {"Retry-After": "3"}, limited(3.0)),
    ("openai-compatible", 429, openai(), {"retry-after-ms": "250"}, limited(0.25)),
    ("openai-compatible", 429, openai("insufficient_quota"), {"Retry-After": "3"}, EXHAUSTED),
    ("openai-compatible", 429, openai(kind="insufficient_quota"), {}, EXHAUSTED),
    ("openai-compatible", 500, openai(), {}, unavailable(500)),
    ("openai-compatible", 503, "not JSON", {"Retry-After": "1"}, unavailable(503, 1.0)),
    ("openai-compatible", 302, openai(), AWAY, REDIRECTED),
    ("openai-compatible", 307, openai(), {"Location": "/v2"}, REDIRECTED),
    ("vllm", 400, {"error": {"message": QUOTED, "code": 400}}, {}, REJECTED),
    ("vllm", 404, openai(kind="NotFoundError"), {}, NO_MODEL),
    ("vllm", 401, {"error": "Unauthorized"}, {}, KEY_REFUSED),
    ("vllm", 503, {"error": "overloaded"}, {}, unavailable(503)),
    ("voyage", 400, {"detail": QUOTED}, {}, REJECTED),
    ("voyage", 401, {"detail": QUOTED}, {}, KEY_REFUSED),
    ("voyage", 403, {"detail": QUOTED}, {}, KEY_REFUSED),
    ("voyage", 404, {"detail": QUOTED}, {}, NO_MODEL),
    ("voyage", 429, {"detail": QUOTED}, {"Retry-After": "11"}, limited(11.0)),
    ("voyage", 429, {"detail": QUOTED}, {}, limited()),
    ("voyage", 500, {"detail": QUOTED}, {}, unavailable(500)),
    ("voyage", 503, {"detail": QUOTED}, {}, unavailable(503)),
    ("voyage", 302, {"detail": QUOTED}, AWAY, REDIRECTED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "status", "body", "headers", "expected"),
    REFUSALS,
    ids=[f"{provider} {status} {expected[1]}" for provider, status, _, _, expected in REFUSALS],
)
def test_a_refusal_is_classified_and_neither_quoted_nor_retried(
    httpserver: HTTPServer,
    ask: Ask,
    caplog: pytest.LogCaptureFixture,
    provider: str,
    status: int,
    body: Any,
    headers: dict[str, str],
    expected: tuple[type[Exception], str, float | None],
) -> None:
    kind, message, retry_after = expected
    caplog.set_level("DEBUG")
    said = body if isinstance(body, str) else json.dumps(body)
    httpserver.expect_request(ANY, method="POST").respond_with_data(
        said, status, headers, content_type="application/json"
    )
    with pytest.raises(kind, match=message) as caught:
        ask(provider, **OPTIONS[provider])
    assert type(caught.value) is kind
    assert getattr(caught.value, "retry_after", None) == retry_after
    is_server_error = status == 424 or status >= 500
    assert getattr(caught.value, "may_be_input", False) == (is_server_error and not retry_after)
    assert QUOTED not in str(caught.value) + caplog.text
    assert caught.value.__context__ is None
    assert len(httpserver.log) == 1


def rows(*vectors: list[float]) -> dict[str, Any]:
    return {"data": [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]}


def values(count: int) -> dict[str, Any]:
    return {"embeddings": [{"values": [1.0] * 1536}] * count}


MALFORMED: dict[str, list[Any]] = {
    "bedrock": ["{", [], None, {}, {"embeddings": {"float": []}}],
    "cohere": [
        *("{", [], None, {"embeddings": {"float": [[0.5] * 1536]}, "texts": ["one"]}),
        {"embeddings": {"int8": [[1], [2]]}, "texts": []},
    ],
    "gemini": [
        *("", "{", None, [], {}, {"embeddings": None}, {"embeddings": 3}, values(1), values(3)),
        {"embeddings": [{"values": "a"}, {"values": [1]}]},
    ],
    "openai-compatible": [
        *("", "{", None, [], '"quoted"', {}, {"data": None}, {"data": []}, {"data": [1, 2]}),
        *(rows([1, 0]), rows([1, 0], [0, 1], [1, 1])),
        {"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]},
        {"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]},
        {"data": [{"index": [0], "embedding": [1]}, {"index": [1], "embedding": [1]}]},
    ],
    "voyage": ["{", [], None, {"data": 3}, {"data": [], "usage": {"total_tokens": 1}}],
}
BODIES = [
    (provider, body if isinstance(body, str) else json.dumps(body))
    for provider, bodies in MALFORMED.items()
    for body in bodies
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "body"), BODIES, ids=[f"{provider} {body[:60]}" for provider, body in BODIES]
)
def test_a_malformed_response_is_refused(
    httpserver: HTTPServer, ask: Ask, provider: str, body: str
) -> None:
    httpserver.expect_request(ANY).respond_with_data(body, content_type="application/json")
    with pytest.raises(MalformedResponse) as caught:
        ask(provider, **OPTIONS[provider])
    assert "quoted" not in caught.value.message


def test_a_response_of_another_type_is_refused(httpserver: HTTPServer, ask: Ask) -> None:
    said = json.dumps(rows([1, 0]))
    httpserver.expect_request(ANY).respond_with_data(said, content_type="text/html")
    with pytest.raises(MalformedResponse):
        ask("openai-compatible", **OPTIONS["openai-compatible"])


OPERATORS = "of-the-operator"
OPERATORS_ENVIRONMENT = {
    **dict.fromkeys(("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "CO_API_KEY"), OPERATORS),
    **dict.fromkeys(("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"), OPERATORS),
    **dict.fromkeys(("OPENAI_ADMIN_KEY", "OPENAI_API_KEY", "OPENAI_ORG_ID"), OPERATORS),
    **dict.fromkeys(("OPENAI_PROJECT_ID", "VOYAGE_API_KEY"), OPERATORS),
    **dict.fromkeys(("AZURE_OPENAI_ENDPOINT", "CO_API_URL"), "http://127.0.0.1:1"),
    **dict.fromkeys(("GOOGLE_GEMINI_BASE_URL", "OPENAI_BASE_URL"), "http://127.0.0.1:1"),
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:1"),
    "GOOGLE_GENAI_API_VERSION": OPERATORS,
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "OPENAI_CUSTOM_HEADERS": (
        f"Authorization: Bearer {OPERATORS}\nX-A: {OPERATORS}\napi-key: {OPERATORS}"
    ),
}


@pytest.mark.parametrize(
    ("provider", "header"),
    [
        ("azure", "Api-Key"),
        ("cohere", "Authorization"),
        ("gemini", "X-Goog-Api-Key"),
        ("ollama", None),
        ("ollama", "Authorization"),
        ("openai-compatible", None),
        ("openai-compatible", "Authorization"),
        ("vllm", None),
        ("vllm", "Authorization"),
        ("voyage", "Authorization"),
    ],
)
def test_the_operators_environment_has_no_effect(
    httpserver: HTTPServer,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    header: str | None,
) -> None:
    for name, value in OPERATORS_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    httpserver.expect_request(ANY).respond_with_data("", 400)
    credentials = no_key if header is None else lambda: SecretStr(KEY)
    with pytest.raises(InputRejected):
        ask(provider, **OPTIONS[provider] | {"credentials": credentials})
    request = httpserver.log[0][0]
    assert OPERATORS not in request.url + str(request.headers)
    for name in ("Api-Key", "Authorization", "X-Goog-Api-Key"):
        sent = (request.headers.get(name) or "").removeprefix("Bearer ")
        assert sent == (KEY if name == header else "")


@pytest.mark.parametrize("provider", OPTIONS)
def test_other_addresses_get_no_request(httpserver: HTTPServer, ask: Ask, provider: str) -> None:
    with pytest.raises(ProviderRefused, match="not encrypted"):
        ask(provider, base_url=f"http://localhost:{httpserver.port}", **OPTIONS[provider])
    assert httpserver.log == []


TEXT = "a confidential sentence"
GEMINI_PATH = "/v1beta/models/gemini-embedding-001:batchEmbedContents"
OPENAI = {"provider": "openai-compatible", "model": "m", "dimensions": 3}


def echo(status: int):
    def handler(request: Request) -> Response:
        key = request.headers.get("Authorization") or request.headers.get("X-Goog-Api-Key")
        said = f"{key} {request.get_data(as_text=True)}".replace("\n", " ")
        error = {"message": said, "code": said, "type": said, "status": said, "details": [said]}
        headers = {"X-Request-Id": said, "X-Echo": said, "Location": "/?" + KEY, "Set-Cookie": said}
        body = json.dumps({"error": error, "data": said, "embeddings": said})
        response = Response(body, headers=headers, content_type="application/json")
        response.status = f"{status} {KEY}"
        return response

    return handler


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 429, 500])
@pytest.mark.parametrize("options", [OPENAI, {"provider": "gemini"}], ids=lambda o: o["provider"])
def test_neither_key_nor_text_appears_anywhere(httpserver, ask, caplog, capfd, options, status):
    path = "/v1/embeddings" if options is OPENAI else GEMINI_PATH
    httpserver.expect_request(path).respond_with_handler(echo(status))
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ProviderError) as caught:
        ask(**options, texts=[TEXT])
    assert httpserver.log
    ours = [r for r in caplog.records if not r.name.startswith("werkzeug")]
    assert any(record.name.startswith("httpx2") for record in ours)
    told = [
        *traceback.format_exception(caught.value),
        repr(caught.value),
        str(caught.value.__dict__),
        *(record.getMessage() + str(record.exc_info) for record in ours),
        capfd.readouterr().out,
    ]
    assert KEY not in "".join(told)
    assert TEXT not in "".join(told)
