"""Azure OpenAI's API through OpenAI's SDK, and managed identities through Azure's."""

import json
import time
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from pytest_httpserver import HTTPServer, RequestHandler
from werkzeug import Request, Response

from rag_assets.common.errors import InputRejected, ProviderRefused, ProviderUnavailable
from rag_assets.models.config import ChatModelConfig, EmbedderConfig
from rag_assets.models.factory import find_price, get_embedder_id
from tests.unit.models.providers.conftest import KEY, Ask, AskChat, no_key

LARGE = "/openai/deployments/text-embedding-3-large/embeddings"
TOKEN = "eyJ-a-token-of-the-identity"
IDENTITY = {"identity": "managed", "client_id": "11111111-2222-3333-4444-555555555555"}
MANAGED: dict[str, Any] = {
    "provider": "azure", "model": "text-embedding-3-large", "connection": IDENTITY,
    "credentials": no_key, "identity_hosts": "127.0.0.1",
}  # fmt: skip
"""What is asked for with the identity of the installation."""


def vectors(dimensions: int, count: int = 2) -> dict[str, Any]:
    rows = [{"index": n, "embedding": [float(n + 1)] * dimensions} for n in range(count)]
    data = [{"object": "embedding", **row} for row in rows]
    return {"object": "list", "data": data, "usage": {"prompt_tokens": 7, "total_tokens": 7}}


def refusal(code: str, message: str) -> str:
    return json.dumps({"error": {"code": code, "message": message}})


def test_a_request_names_deployment_version_and_key(httpserver: HTTPServer, ask: Ask) -> None:
    path = "/openai/deployments/passages/embeddings"
    httpserver.expect_request(path, method="POST").respond_with_json(vectors(1024))
    reply = ask(
        "azure", model="text-embedding-3-large", dimensions=1024,
        connection={"deployment": "passages", "api_version": "2025-04-01-preview"},
    )  # fmt: skip
    assert np.asarray(reply.vectors).shape == (2, 1024)
    assert reply.tokens == 7
    request = httpserver.log[0][0]
    assert request.args.to_dict() == {"api-version": "2025-04-01-preview"}
    assert request.headers["Api-Key"] == KEY
    assert "Authorization" not in request.headers
    body = request.get_json()
    assert (body["input"], body["dimensions"]) == (["one", "two"], 1024)


def test_a_deployment_without_a_name_has_the_models(httpserver: HTTPServer, ask: Ask) -> None:
    httpserver.expect_request(LARGE).respond_with_json(vectors(3072))
    ask("azure", model="text-embedding-3-large")
    assert httpserver.log[0][0].args.to_dict() == {"api-version": "2024-10-21"}


def test_too_many_texts_are_refused_with_azures_own_words(httpserver: HTTPServer, ask: Ask) -> None:
    def limited(request: Request) -> Response:
        if len(request.get_json()["input"]) > 16:
            body = refusal("invalid_request", "Too many inputs. The max number of inputs is 16.")
            return Response(body, 400, content_type="application/json")
        return Response(json.dumps(vectors(3072, 16)), content_type="application/json")

    httpserver.expect_request(LARGE).respond_with_handler(limited)
    with pytest.raises(InputRejected):
        ask("azure", ["text"] * 17, model="text-embedding-3-large")
    assert len(ask("azure", ["text"] * 16, model="text-embedding-3-large").vectors) == 16


@pytest.fixture
def token_service(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> RequestHandler:
    """Return App Service's token endpoint, whose response a test sets."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", httpserver.url_for("/msi/token"))
    monkeypatch.setenv("IDENTITY_HEADER", "secret-of-the-platform")
    return httpserver.expect_request("/msi/token", method="GET")


def test_a_managed_identity_sends_its_token_and_no_key(
    httpserver: HTTPServer,
    ask: Ask,
    token_service: RequestHandler,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resource = "https://cognitiveservices.azure.com"
    expires = str(int(time.time()) + 3_600)
    token = {"access_token": TOKEN, "resource": resource, "token_type": "Bearer"}
    token_service.respond_with_json({**token, "expires_on": expires})
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "of-the-operator")
    monkeypatch.setenv(
        "OPENAI_CUSTOM_HEADERS", "authorization: Bearer of-the-operator\napi-key: of-the-operator"
    )
    httpserver.expect_request(LARGE).respond_with_json(vectors(3072))
    ask(**MANAGED)
    requests = {request.path: request for request, _ in httpserver.log}
    asked, sent = requests["/msi/token"], requests[LARGE]
    assert asked.headers["X-Identity-Header"] == "secret-of-the-platform"
    assert asked.args["resource"] == resource
    assert asked.args["client_id"] == IDENTITY["client_id"]
    assert sent.headers["Authorization"] == f"Bearer {TOKEN}"
    assert "Api-Key" not in sent.headers
    assert "of-the-operator" not in str(sent.headers)


def test_a_server_that_is_not_listed_gets_no_token(httpserver: HTTPServer, ask: Ask) -> None:
    with pytest.raises(ProviderRefused, match="cloud identity to 127") as caught:
        ask(**MANAGED | {"identity_hosts": "acme.openai.azure.com"})
    assert "RAG_ASSETS_IDENTITY_HOSTS" in (caught.value.hint or "")
    assert httpserver.log == []


def test_a_machine_without_identity_has_a_remedy(ask: Ask, token_service: RequestHandler) -> None:
    token_service.respond_with_json({"message": KEY}, 400)
    with pytest.raises(ProviderRefused, match="managed identity") as caught:
        ask(**MANAGED)
    assert "Cognitive Services OpenAI User" in (caught.value.hint or "")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("body", [json.dumps({"message": KEY}), "<html>"])
def test_a_failing_token_service_passes(ask: Ask, token_service: RequestHandler, body: str) -> None:
    # 501 is one that Azure's SDK does not retry.
    token_service.respond_with_data(body, 501)
    with pytest.raises(ProviderUnavailable, match="issues tokens") as caught:
        ask(**MANAGED)
    assert KEY not in str(caught.value)


def test_a_token_service_without_a_response_stops_no_tenant(
    httpserver: HTTPServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from azure.core.exceptions import ServiceRequestError
    from azure.identity import CredentialUnavailableError, ManagedIdentityCredential

    def get_token(*_: object, **__: object) -> None:
        raise CredentialUnavailableError("no response from IMDS") from ServiceRequestError("")

    monkeypatch.setattr(ManagedIdentityCredential, "get_token", get_token)
    with pytest.raises(ProviderUnavailable, match="issues tokens"):
        ask(**MANAGED)
    assert httpserver.log == []


def test_a_chat_deployment_answers(httpserver: HTTPServer, ask_chat: AskChat) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Yes."}}
    usage = {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}
    httpserver.expect_request(
        "/openai/deployments/talk/chat/completions", method="POST"
    ).respond_with_json({"choices": [{**choice, "finish_reason": "stop"}], "usage": usage})
    answer = ask_chat("azure", model="gpt-4.1-mini", connection={"deployment": "talk"})
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("Yes.", 11, 2)
    assert httpserver.log[0][0].headers["Api-Key"] == KEY


def config(**values: Any) -> EmbedderConfig:
    given = {"model": "text-embedding-3-large", "base_url": "https://acme.openai.azure.com"}
    return EmbedderConfig.model_validate({"provider": "azure", **given, **values})


def test_the_list_price_holds_for_azures_servers_alone() -> None:
    assert (price := find_price(config())) is not None
    assert price.per_million == 0.13
    assert find_price(config(base_url="https://gateway.example")) is None
    assert find_price(config(base_url="https://openai.azure.com.example")) is None


def test_the_deployment_is_part_of_the_embedders_id_and_the_version_is_not() -> None:
    plain = get_embedder_id(config())
    assert get_embedder_id(config(connection={"api_version": "2025-01-01-preview"})) == plain
    assert get_embedder_id(config(connection={"deployment": "other"})) != plain


def test_a_stored_configuration_is_read_back() -> None:
    given = config(connection={"deployment": "passages"})
    assert EmbedderConfig.model_validate(given.model_dump(mode="json")) == given
    url, connection = "https://acme.openai.azure.com", {"deployment": "talk"}
    options = {"model": "gpt-4o", "provider": "azure", "base_url": url, "connection": connection}
    chat = ChatModelConfig.model_validate(options)
    assert ChatModelConfig.model_validate(chat.model_dump(mode="json")) == chat


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"connection": {"deploymnet": "x"}}, "connection.deploymnet: .*deployment"),
        ({"connection": {"api_version": "latest"}}, "connection.api_version"),
        ({"connection": {"identity": "managed"}, "api_key": "$KEY"}, "cannot be combined"),
        ({"base_url": None}, "base_url"),
    ],
)
def test_a_wrong_setting_is_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        config(**values)
