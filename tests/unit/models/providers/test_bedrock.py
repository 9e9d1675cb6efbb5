"""Amazon Bedrock's API through botocore: requests, signatures, responses."""

import asyncio
import json
import re
import ssl
import threading
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpcore2
import numpy as np
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import (
    CredentialRetrievalError,
    MetadataRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.session import Session
from cryptography import x509
from pydantic import SecretStr, ValidationError
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import InputRejected, ProviderRefused, ProviderUnavailable
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import build_remote_model
from tests.unit.models.conftest import write_certificate
from tests.unit.models.providers.conftest import Ask, AskChat, endpoint_of, no_key

ACCESS, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a-session"
TITAN = "amazon.titan-embed-text-v2:0"
COHERE = "cohere.embed-multilingual-v3"
REGION = {"region": "eu-central-1"}
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<access>[^/]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/"
    r"aws4_request, SignedHeaders=(?P<names>[^,]+), Signature=(?P<signature>[0-9a-f]{64})"
)


def key(*parts: str) -> Callable[[], SecretStr]:
    return lambda: SecretStr(":".join(parts))


def is_signed(request: Request, token: str | None = None) -> bool:
    """Return whether a request's signature is valid by AWS's own rules."""
    found = _AUTHORIZATION.fullmatch(request.headers["Authorization"])
    assert found is not None
    assert (found["access"], found["region"]) == (ACCESS, REGION["region"])
    names = found["names"].split(";")
    assert {"host", "x-amz-date"} <= set(names)
    address = f"http://{request.host}{request.environ['REQUEST_URI']}"
    copy = AWSRequest(
        request.method, address, {name: request.headers[name] for name in names}, request.get_data()
    )
    copy.context["timestamp"] = request.headers["X-Amz-Date"]
    signer = SigV4Auth(Credentials(ACCESS, SECRET, token), found["service"], found["region"])
    to_sign = signer.string_to_sign(copy, signer.canonical_request(copy))
    return bool(signer.signature(to_sign, copy) == found["signature"])


SIGNED: dict[str, Any] = {"connection": REGION, "credentials": key(ACCESS, SECRET)}
OPERATORS_ENVIRONMENT = {
    **dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "of-the-operator"),
    **dict.fromkeys(("AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE"), "of-the-operator"),
    "AWS_SDK_UA_APP_ID": "of-the-operator",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    "AWS_RETRY_MODE": "adaptive",
    "AWS_DEFAULTS_MODE": "mobile",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "AWS_MAX_ATTEMPTS": "5",
    "AWS_REQUEST_MIN_COMPRESSION_SIZE_BYTES": "no number",
}


def serve(httpserver: HTTPServer, answer: Any, **headers: str) -> None:
    path = re.compile("/model/.*/invoke")
    httpserver.expect_request(path, method="POST").respond_with_json(answer, headers=headers)


@pytest.mark.parametrize("token", [None, SESSION])
def test_a_request_is_signed_with_the_tenants_key(
    httpserver: HTTPServer, ask: Ask, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    for name, value in OPERATORS_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    serve(httpserver, {"embedding": [0.5] * 512, "inputTextTokenCount": 3})
    parts = [ACCESS, SECRET] if token is None else [ACCESS, SECRET, token]
    reply = ask("bedrock", ["über"], dimensions=512, connection=REGION, credentials=key(*parts))
    assert np.asarray(reply.vectors).tolist() == [[0.5] * 512]
    assert reply.tokens == 3
    request = httpserver.log[0][0]
    assert request.path == f"/model/{TITAN}/invoke"
    assert request.get_json() == {"inputText": "über", "dimensions": 512}
    assert request.headers.get("X-Amz-Security-Token") == token
    assert is_signed(request, token)
    assert "of-the-operator" not in str(request.headers)
    assert "retry-mode#standard" in request.headers["User-Agent"]


def test_a_signature_does_not_hold_for_another_secret(httpserver: HTTPServer, ask: Ask) -> None:
    serve(httpserver, {"embedding": [0.5] * 1024, "inputTextTokenCount": 3})
    ask("bedrock", ["one"], connection=REGION, credentials=key(ACCESS, SECRET[::-1]))
    assert not is_signed(httpserver.log[0][0])


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a certificate of 127.0.0.1 that is trusted like a public one."""
    path = write_certificate(tmp_path, x509.IPAddress(ip_address("127.0.0.1")))
    monkeypatch.setattr(
        httpcore2, "default_ssl_context", lambda **_: ssl.create_default_context(cafile=str(path))
    )
    return path


def test_https_takes_api_keys(ask: Ask, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "of-the-operator")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with HTTPServer(host="127.0.0.1", ssl_context=context) as server:
        serve(server, {"embedding": [0.5] * 1024, "inputTextTokenCount": 3})
        url, credentials = f"https://127.0.0.1:{server.port}", key("bedrock-api-key-abc")
        ask("bedrock", ["one"], base_url=url, connection=REGION, credentials=credentials)
        assert server.log[0][0].headers["Authorization"] == "Bearer bedrock-api-key-abc"


def test_an_api_key_is_not_sent_without_encryption(httpserver: HTTPServer, ask: Ask) -> None:
    with pytest.raises(ProviderRefused, match="only be sent over https"):
        ask("bedrock", ["one"], connection=REGION, credentials=key("bedrock-api-key-abc"))
    assert httpserver.log == []


@pytest.mark.parametrize(
    ("purpose", "input_type"), [("document", "search_document"), ("query", "search_query")]
)
def test_coheres_models_get_the_use_of_their_texts(
    httpserver: HTTPServer, ask: Ask, purpose: str, input_type: str
) -> None:
    rows = [[0.5] * 1024, [0.25] * 1024]
    body = {"embeddings": {"float": rows}, "id": "x", "response_type": "embeddings_by_type"}
    serve(httpserver, body, **{"X-Amzn-Bedrock-Input-Token-Count": "12"})
    reply = ask("bedrock", model=COHERE, purpose=purpose, **SIGNED)
    assert np.asarray(reply.vectors).tolist() == rows
    assert reply.tokens == 12
    sent = {"texts": ["one", "two"], "input_type": input_type, "embedding_types": ["float"]}
    assert httpserver.log[0][0].get_json() == sent


def test_cohere_3_gets_no_text_over_2048_characters(httpserver: HTTPServer, ask: Ask) -> None:
    serve(httpserver, {"embeddings": {"float": [[0.5] * 1024]}})
    ask("bedrock", ["é" * 2_048], model=COHERE, **SIGNED)
    with pytest.raises(InputRejected, match="2,048 characters") as caught:
        ask("bedrock", ["é" * 2_049], model=COHERE, **SIGNED)
    assert caught.value.requests == 0
    assert len(httpserver.log) == 1
    model = build_remote_model(EmbedderConfig(provider="bedrock", model=COHERE, connection=REGION))
    assert model.limits.input_tokens == 2_048


def test_cohere_4_cuts_no_text(httpserver: HTTPServer, ask: Ask) -> None:
    serve(httpserver, {"embeddings": {"float": [[0.5] * 1536]}})
    ask("bedrock", ["a" * 2_049], model="cohere.embed-v4:0", **SIGNED)
    assert httpserver.log[0][0].get_json()["truncate"] == "NONE"


def test_a_call_has_no_more_texts_than_a_model_takes(httpserver: HTTPServer, ask: Ask) -> None:
    def limited(request: Request) -> Response:
        count = len(request.get_json()["texts"])
        if count > 96:
            message = {"message": "Malformed input request: expected maximum item count: 96"}
            named = {"X-Amzn-ErrorType": "ValidationException"}
            return Response(json.dumps(message), 400, named)
        return Response(json.dumps({"embeddings": {"float": [[0.5] * 1024] * count}}))

    httpserver.expect_request(f"/model/{COHERE}/invoke").respond_with_handler(limited)
    config = EmbedderConfig(provider="bedrock", model=COHERE, connection=REGION)
    most = build_remote_model(config).limits.texts
    assert len(ask("bedrock", ["a"] * most, model=COHERE, **SIGNED).vectors) == 96
    with pytest.raises(InputRejected):
        ask("bedrock", ["a"] * (most + 1), model=COHERE, **SIGNED)
    titan = build_remote_model(EmbedderConfig(provider="bedrock", connection=REGION)).limits
    assert titan.texts == 1


def test_the_installations_identity_signs_for_a_server_that_the_operator_lists(
    httpserver: HTTPServer, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    serve(httpserver, {"embedding": [0.5] * 1024, "inputTextTokenCount": 3})
    connection = {**REGION, "identity": "managed"}
    with pytest.raises(ProviderRefused, match="cloud identity"):
        ask("bedrock", ["one"], connection=connection, credentials=no_key)
    assert httpserver.log == []
    ask("bedrock", ["one"], connection=connection, credentials=no_key, identity_hosts="127.0.0.1")
    assert is_signed(httpserver.log[0][0])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CredentialRetrievalError(provider="container-role", error_msg="503"), ProviderUnavailable),
        (MetadataRetrievalError(error_msg="timeout"), ProviderUnavailable),
        (NoCredentialsError(), ProviderRefused),
        (PartialCredentialsError(provider="env", cred_var="x"), ProviderRefused),
    ],
)
def test_credentials_that_are_unavailable_stop_no_tenant_and_no_event_loop(
    httpserver: HTTPServer,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    kind: type[Exception],
) -> None:
    threads: list[threading.Thread] = []

    def get_credentials(_: Session) -> None:
        threads.append(threading.current_thread())
        raise error

    monkeypatch.setattr(Session, "get_credentials", get_credentials)
    with pytest.raises(kind, match="cloud identity"):
        ask("bedrock", connection={**REGION, "identity": "managed"}, identity_hosts="127.0.0.1")
    assert threads != [threading.main_thread()]
    assert httpserver.log == []


def test_requests_that_are_given_up_leave_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.models.providers.bedrock._THREADS", 2)
    is_over = threading.Event()

    def answer(request: Request) -> Response:
        if request.get_json()["inputText"] == "slow":
            is_over.wait(30)
        return Response(json.dumps({"embedding": [0.5] * 1024, "inputTextTokenCount": 3}))

    async def give_up_and_ask(server: HTTPServer) -> None:
        config = EmbedderConfig(
            provider="bedrock", base_url=f"http://127.0.0.1:{server.port}", connection=REGION
        )
        endpoint = endpoint_of(config, key(ACCESS, SECRET))
        await endpoint.request(["quick"], "query")
        slow = [asyncio.create_task(endpoint.request(["slow"], "query")) for _ in range(6)]
        done, pending = await asyncio.wait(slow, timeout=0.5)
        assert not done
        for task in pending:
            task.cancel()
        await asyncio.wait(pending)
        async with asyncio.timeout(10):
            await endpoint.request(["quick"], "query")
        await endpoint.close()

    with HTTPServer(host="127.0.0.1", threaded=True) as server:
        server.expect_request(f"/model/{TITAN}/invoke").respond_with_handler(answer)
        try:
            asyncio.run(give_up_and_ask(server))
        finally:
            is_over.set()
        texts = [request.get_json()["inputText"] for request, _ in server.log]
    assert texts.count("slow") <= 2


def test_a_chat_model_answers_by_converse(httpserver: HTTPServer, ask_chat: AskChat) -> None:
    httpserver.expect_request(
        "/model/amazon.nova-lite-v1:0/converse", method="POST"
    ).respond_with_json(
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "Yes."}]}},
            "stopReason": "max_tokens",
            "usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11},
            "metrics": {"latencyMs": 5},
        }
    )
    model, secret = "amazon.nova-lite-v1:0", f"{ACCESS}:{SECRET}"
    answer = ask_chat("bedrock", model=model, key=secret, connection=REGION)
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("Yes.", 9, 2)
    assert answer.cut
    request = httpserver.log[0][0]
    assert is_signed(request)
    assert request.get_json() == {
        "system": [{"text": "Be short."}],
        "messages": [{"role": "user", "content": [{"text": "What is it?"}]}],
        "inferenceConfig": {"maxTokens": 100},
    }


@pytest.mark.parametrize("region", [None, "evil.example/", "eu-central-1.evil.example#"])
def test_a_region_is_required_and_is_no_other_host(region: str | None) -> None:
    connection = {} if region is None else {"region": region}
    with pytest.raises(ValidationError, match=r"connection\.region"):
        EmbedderConfig.model_validate({"provider": "bedrock", "connection": connection})
