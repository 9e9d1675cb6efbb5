"""Vertex AI's API through Google's SDK, and the tokens of a service account."""

import json
import threading
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import jwt
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import SecretStr, ValidationError
from pytest_httpserver import HTTPServer

from rag_assets.common.errors import (
    InputRejected,
    MalformedResponse,
    ProviderRefused,
    ProviderUnavailable,
)
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import find_price
from tests.unit.models.providers.conftest import Ask, AskChat

PLACE = {"project": "acme-search", "location": "europe-west4"}
MODELS = "/v1/projects/acme-search/locations/europe-west4/publishers/google/models"
GEMINI = f"{MODELS}/gemini-embedding-001:batchEmbedContents"
TOKEN = "ya29.a-token"
PRIVATE_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def service_account(httpserver: HTTPServer, token_uri: str | None = None) -> str:
    pem = PRIVATE_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    account = {
        "type": "service_account", "project_id": "acme-search", "private_key_id": "k1",
        "private_key": pem, "client_email": "search@acme-search.iam.gserviceaccount.com",
        "token_uri": token_uri or f"http://127.0.0.1:{httpserver.port}/token",
    }  # fmt: skip
    return b64encode(json.dumps(account).encode()).decode()


@pytest.fixture
def credentials(httpserver: HTTPServer) -> Callable[[], SecretStr]:
    """Create a service account, and a token server that accepts it."""
    httpserver.expect_request("/token", method="POST").respond_with_json(
        {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}
    )
    account = service_account(httpserver)
    return lambda: SecretStr(account)


def answer(count: int, dimensions: int) -> dict[str, Any]:
    rows = [{"values": [float(n + 1)] * dimensions} for n in range(count)]
    return {"embeddings": rows, "usageMetadata": {"promptTokenCount": 6}}


@pytest.mark.parametrize(
    ("purpose", "task"), [("document", "RETRIEVAL_DOCUMENT"), ("query", "RETRIEVAL_QUERY")]
)
def test_a_request_has_a_token_of_the_service_account_and_the_task(
    httpserver: HTTPServer, ask: Ask, credentials: Callable[[], SecretStr], purpose: str, task: str
) -> None:
    httpserver.expect_request(GEMINI, method="POST").respond_with_json(answer(2, 768))
    options = {"dimensions": 768, "connection": PLACE}
    reply = ask("vertex", purpose=purpose, credentials=credentials, **options)
    assert np.asarray(reply.vectors).tolist() == [[1.0] * 768, [2.0] * 768]
    (asked, _), (sent, _) = httpserver.log
    assertion = jwt.decode(
        asked.form["assertion"], PRIVATE_KEY.public_key(), algorithms=["RS256"],
        audience="https://oauth2.googleapis.com/token",
    )  # fmt: skip
    assert assertion["iss"] == "search@acme-search.iam.gserviceaccount.com"
    assert assertion["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert sent.headers["Authorization"] == f"Bearer {TOKEN}"
    assert task in sent.get_data(as_text=True)
    requests = sent.get_json()["requests"]
    assert [each["embedContentConfig"]["autoTruncate"] for each in requests] == [False] * 2
    assert "768" in sent.get_data(as_text=True)


def test_an_older_model_is_asked_by_predict(
    httpserver: HTTPServer, ask: Ask, credentials: Callable[[], SecretStr]
) -> None:
    row = {"embeddings": {"values": [0.5] * 256, "statistics": {"token_count": 3}}}
    rows = [row, row]
    httpserver.expect_request(
        f"{MODELS}/text-embedding-005:predict", method="POST"
    ).respond_with_json({"predictions": rows})
    options = {"connection": PLACE, "credentials": credentials}
    reply = ask("vertex", model="text-embedding-005", dimensions=256, **options)
    assert np.asarray(reply.vectors).tolist() == [[0.5] * 256] * 2
    assert reply.tokens == 6
    body = httpserver.log[1][0].get_json()
    assert [each["task_type"] for each in body["instances"]] == ["RETRIEVAL_DOCUMENT"] * 2
    assert body["parameters"] == {"outputDimensionality": 256, "autoTruncate": False}


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (400, InputRejected, "rejects a text"),
        (401, ProviderRefused, "the key"),
        (403, ProviderRefused, "the key"),
        (404, ProviderRefused, "no such model"),
        (429, ProviderUnavailable, "limits requests"),
        (503, ProviderUnavailable, "HTTP 503"),
    ],
)
def test_a_refusal_is_classified_and_not_quoted(
    httpserver: HTTPServer,
    ask: Ask,
    credentials: Callable[[], SecretStr],
    status: int,
    kind: type[Exception],
    message: str,
) -> None:
    error = {"error": {"code": status, "message": f"{TOKEN} one", "status": "X", "details": []}}
    httpserver.expect_request(GEMINI).respond_with_json(error, status, {"Retry-After": "5"})
    with pytest.raises(kind, match=message) as caught:
        ask("vertex", connection=PLACE, credentials=credentials)
    assert TOKEN not in str(caught.value)
    assert caught.value.__context__ is None
    if kind is ProviderUnavailable:
        assert caught.value.retry_after == 5.0  # type: ignore[attr-defined]


def test_the_address_of_the_token_server_is_checked(httpserver: HTTPServer, ask: Ask) -> None:
    account = service_account(httpserver, f"http://localhost:{httpserver.port}/token")
    with pytest.raises(ProviderRefused, match="not encrypted"):
        ask("vertex", connection=PLACE, credentials=lambda: SecretStr(account))
    assert httpserver.log == []


@pytest.mark.parametrize("key", ["AIzaSomething", b64encode(b'{"type": "other"}').decode()])
def test_a_key_of_another_kind_has_a_remedy(httpserver: HTTPServer, ask: Ask, key: str) -> None:
    with pytest.raises(ProviderRefused, match="no token") as caught:
        ask("vertex", connection=PLACE, credentials=lambda: SecretStr(key))
    assert "base64" in (caught.value.hint or "")
    assert key not in str(caught.value)
    assert httpserver.log == []


@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_failing_token_server_passes(httpserver: HTTPServer, ask: Ask, status: int) -> None:
    account = service_account(httpserver)
    httpserver.expect_request("/token").respond_with_data("<html>", status)
    with pytest.raises(ProviderUnavailable, match="issues Google's tokens"):
        ask("vertex", connection=PLACE, credentials=lambda: SecretStr(account))


def test_a_refused_service_account_needs_a_person(httpserver: HTTPServer, ask: Ask) -> None:
    account = service_account(httpserver)
    refusal = {"error": "invalid_grant", "error_description": TOKEN}
    httpserver.expect_request("/token").respond_with_json(refusal, 400)
    with pytest.raises(ProviderRefused, match="no token") as caught:
        ask("vertex", connection=PLACE, credentials=lambda: SecretStr(account))
    assert TOKEN not in str(caught.value)


def test_a_metadata_server_that_is_unreachable_stops_no_tenant(
    httpserver: HTTPServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from google.auth import compute_engine
    from google.auth.exceptions import RefreshError, TransportError

    class Metadata(compute_engine.Credentials):
        def refresh(self, _: object) -> None:
            raise RefreshError("503") from TransportError("503")  # type: ignore[no-untyped-call]

    threads: list[threading.Thread] = []

    def default(**_: object) -> tuple[Metadata, None]:
        threads.append(threading.current_thread())
        return Metadata(), None  # type: ignore[no-untyped-call]

    monkeypatch.setattr("google.auth.default", default)
    with pytest.raises(ProviderUnavailable, match="issues Google's tokens"):
        ask("vertex", connection={**PLACE, "identity": "managed"}, identity_hosts="127.0.0.1")
    assert threads != [threading.main_thread()]
    assert httpserver.log == []


def test_a_malformed_response_is_refused(
    httpserver: HTTPServer, ask: Ask, credentials: Callable[[], SecretStr]
) -> None:
    httpserver.expect_request(GEMINI).respond_with_json(answer(1, 1536))
    with pytest.raises(MalformedResponse, match="1 vectors for 2 texts"):
        ask("vertex", connection=PLACE, credentials=credentials)


def test_a_chat_model_answers(
    httpserver: HTTPServer, ask_chat: AskChat, credentials: Callable[[], SecretStr]
) -> None:
    parts = {"role": "model", "parts": [{"text": "Yes."}]}
    httpserver.expect_request(
        f"{MODELS}/gemini-2.5-flash:generateContent", method="POST"
    ).respond_with_json(
        {
            "candidates": [{"content": parts, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2},
        }
    )
    key = credentials().get_secret_value()
    reply = ask_chat("vertex", model="gemini-2.5-flash", connection=PLACE, key=key)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("Yes.", 9, 2)


def test_prices_and_settings_follow_from_the_provider() -> None:
    config = EmbedderConfig.model_validate({"provider": "vertex", "connection": PLACE})
    assert (price := find_price(config)) is not None
    assert price.per_million == 0.15
    elsewhere = {**PLACE, "location": "evil.example/"}
    with pytest.raises(ValidationError, match=r"connection\.location"):
        EmbedderConfig.model_validate({"provider": "vertex", "connection": elsewhere})
