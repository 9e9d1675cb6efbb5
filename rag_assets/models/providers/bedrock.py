"""Amazon Bedrock: embeddings and chat models, through botocore, and the table of its models.

Source of limits: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html. Source
of prices, in dollars per million tokens in us-east-1: https://aws.amazon.com/bedrock/pricing/, as
of November 2026. `embedder.price` and `chat_model.prices` in tenants.yaml replace them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pydantic import Field, SecretStr

from rag_assets.common.errors import (
    Fault,
    InputRejected,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from rag_assets.models.chat import ChatReply, Prompt, SdkChatEndpoint
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import EmbeddingReply, KnownModel, SdkEndpoint
from rag_assets.models.prices import Price, build_chat_price
from rag_assets.models.providers.base import ChatOffer, Extra, Provider, RemoteEmbedding
from rag_assets.models.providers.cohere import INPUT_TYPES
from rag_assets.models.transport.connection import SdkConnection, read_token_count
from rag_assets.models.transport.failures import HttpRefusal, Refusal, classify_refusal
from rag_assets.models.transport.settings import CloudSettings

if TYPE_CHECKING:
    import httpx2
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.session import Session

T = TypeVar("T")

_MODULE: Final = "botocore.session"
_THREADS: Final = 32
"""Maximum concurrent requests of a connection: botocore blocks a thread for each request."""
_COHERE_3 = re.compile(r"cohere\.embed-[a-z]+-v3")
_COHERE_3_CHARACTERS: Final = 2_048
"""Maximum characters of a text. With `truncate: NONE`, Bedrock rejects even shorter texts."""
_FAULTS: Mapping[str, Fault] = {
    "AccessDeniedException": "key",
    "UnrecognizedClientException": "key",
    "InvalidSignatureException": "key",
    "ExpiredTokenException": "key",
    "ResourceNotFoundException": "model",
}
_LIMITED = frozenset(
    {"ThrottlingException", "ServiceQuotaExceededException", "ModelNotReadyException"}
)


class BedrockSettings(CloudSettings):
    """The settings of a connection to Amazon Bedrock; signatures contain the region."""

    region: str = Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]{1,2}$")


class _BedrockClient:
    """A botocore client that sends its requests through the guarded client.

    Before botocore opens a connection, it asks the handlers of its event `before-send` for a
    response. The handler here always returns a response or raises, so botocore never opens a
    connection. At that time the request is already signed; it is sent unchanged.
    """

    def __init__(self, sdk: Any, http: httpx2.AsyncClient) -> None:
        self._sdk = sdk
        self._http = http
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="bedrock")
        self._calls_by_thread = threading.local()
        sdk.meta.events.register("before-send.bedrock-runtime", self._send)

    async def call(self, send: Callable[[Any], Any]) -> Any:
        """Call the SDK in a thread, which becomes free immediately if the call is cancelled."""
        loop = asyncio.get_running_loop()
        call = _Call(loop)

        def run() -> Any:
            self._calls_by_thread.call = call
            return send(self._sdk)

        try:
            # Cancelling this removes the call from the queue; a thread that already runs the call
            # has to be woken.
            return await loop.run_in_executor(self._threads, run)
        finally:
            call.cancel()

    def close(self) -> None:
        """Stop the threads after their requests have ended."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        from botocore.awsrequest import AWSResponse

        from rag_assets.models.transport.http_client import send

        headers = {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in request.headers.items()
        }
        body = request.body.encode() if isinstance(request.body, str) else request.body
        call: _Call = self._calls_by_thread.call
        response = call.await_result(
            lambda: send(self._http, request.method, request.url, headers, body)
        )
        raw = _ResponseBody(response.content)
        return AWSResponse(request.url, response.status_code, dict(response.headers), raw)


class _Call:
    """An SDK call that blocks a thread while an event loop sends the call's request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._sent: Future[Any] | None = None

    def await_result(self, send: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine in the event loop, and block the thread until it ends or is cancelled."""
        with self._lock:
            if self._is_cancelled:
                raise CancelledError
            sent = asyncio.run_coroutine_threadsafe(send(), self._loop)
            self._sent = sent
        return sent.result()

    def cancel(self) -> None:
        """Cancel the request, unless it has already ended."""
        with self._lock:
            self._is_cancelled = True
            if self._sent is not None:
                self._sent.cancel()


class _ResponseBody(BytesIO):
    """A complete response body with the interface of urllib3's response, as botocore expects it."""

    def stream(self, *_: object, **__: object) -> Any:
        """Yield the whole body as one piece."""
        yield self.read()


class BedrockConnection(SdkConnection[_BedrockClient]):
    """A connection to Bedrock in one region; see SdkConnection.

    The key is either an API key of Bedrock, or `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, followed by
    `:SESSION_TOKEN` if it is temporary.
    """

    key_headers = frozenset({"authorization", "x-amz-security-token"})

    def get_address(self) -> str:
        """Return the base_url, or the region's own address; see SdkConnection."""
        region = self._settings.region
        return self.server.base_url or f"https://bedrock-runtime.{region}.amazonaws.com"

    @property
    def _settings(self) -> BedrockSettings:
        return cast("BedrockSettings", self.server.settings)

    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> _BedrockClient:
        from botocore.config import Config
        from botocore.session import Session

        # At DEBUG level, botocore logs requests with their headers, and responses.
        logger = logging.getLogger("botocore")
        logger.setLevel(max(logger.level, logging.INFO))
        is_api_key = key is not None and ":" not in key.get_secret_value()
        if is_api_key and not self.get_address().startswith("https://"):
            raise ProviderRefused(
                f"{self.server.id}: an API key of Bedrock can only be sent over https",
                hint="set a base_url with https://, or a key ACCESS_KEY_ID:SECRET_ACCESS_KEY",
                fault="address",
            )
        if key is None:
            # Credentials of the machine, the task or the pod, or of the environment.
            session, scheme = Session(), None
        else:
            session, scheme = _open_tenant_session(key.get_secret_value())
        sdk = session.create_client(
            "bedrock-runtime",
            region_name=self._settings.region,
            endpoint_url=self.get_address(),
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 1},
                # Set it explicitly, since the operator's AWS_BEARER_TOKEN_BEDROCK would change it.
                signature_version=scheme,
                ignore_configured_endpoint_urls=True,
                proxies={},
                tcp_keepalive=False,
            ),
        )
        return _BedrockClient(sdk, http)

    def _close_sdk(self, sdk: _BedrockClient) -> None:
        sdk.close()

    def _convert_error(self, error: Exception) -> ProviderError | None:
        if isinstance(error, HttpRefusal) and _read_error_kind(error) in _LIMITED:
            return classify_refusal(
                Refusal(HTTPStatus.TOO_MANY_REQUESTS, error.headers), self.server.id
            )
        if isinstance(error, HttpRefusal) and error.status == HTTPStatus.FAILED_DEPENDENCY:
            # The model or its stream failed, for which Bedrock has its own names of a server error.
            return classify_refusal(
                Refusal(HTTPStatus.SERVICE_UNAVAILABLE, error.headers), self.server.id
            )
        from botocore.exceptions import CredentialRetrievalError, MetadataRetrievalError

        if isinstance(error, CredentialRetrievalError | MetadataRetrievalError):
            return ProviderUnavailable(
                f"{self.server.id}: the service that issues credentials of this installation's"
                " cloud identity is unavailable"
            )
        if type(error).__module__.startswith("botocore.") and "Credential" in type(error).__name__:
            return ProviderRefused(
                f"{self.server.id}: the cloud identity of this installation has no credentials",
                hint="assign the machine, task or pod a role that may call bedrock:InvokeModel; or"
                " remove `identity` from `connection`, and set a key",
                fault="key",
            )
        return super()._convert_error(error)

    def _find_fault(self, refusal: HttpRefusal) -> Fault | None:
        return _FAULTS.get(_read_error_kind(refusal))


def _read_error_kind(refusal: HttpRefusal) -> str:
    """Return the kind of an AWS error from a header, without a suffix; "" if it is missing."""
    return refusal.headers.get("x-amzn-errortype", "").partition(":")[0]


def _open_tenant_session(key: str) -> tuple[Session, str]:
    """Return a session for a tenant's key, and how requests carry it: "v4" (signed) or "bearer".

    The session reads neither the operator's environment nor configuration files.
    """
    from botocore.session import Session
    from botocore.tokens import FrozenAuthToken

    # Each variable is defined by its name in files, its AWS_ variables, its default and its type.
    nowhere = {
        name: (None, None, default, kind)
        for name, (_, _, default, kind) in Session.SESSION_VARIABLES.items()
    } | {
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    session = Session(session_vars=nowhere)
    access, separator, secret_and_token = key.partition(":")
    secret, _, token = secret_and_token.partition(":")
    if separator:
        session.set_credentials(access, secret, token or None)
        return session, "v4"
    session.register_component("token_provider", _TokenProvider(FrozenAuthToken(key)))
    return session, "bearer"


class _TokenProvider:
    """Botocore's source of the API key: the tenant's key, not the operator's variable."""

    def __init__(self, token: object) -> None:
        self._token = token

    def load_token(self, **_: object) -> object:
        """Return the API key as a token."""
        return self._token


class BedrockEndpoint(BedrockConnection, SdkEndpoint[_BedrockClient]):
    """An embedding model of Bedrock: Titan, or Cohere; see SdkEndpoint."""

    async def _embed(
        self, sdk: _BedrockClient, texts: list[str], purpose: Purpose
    ) -> EmbeddingReply:
        name = self.model.name
        body = (
            self._build_cohere_body(texts, purpose)
            if "cohere." in name
            else {"inputText": texts[0], **self.model.get_dimension_option("dimensions")}
        )
        answer, headers = await sdk.call(lambda client: _invoke_model(client, name, body))
        charged = answer.get("inputTextTokenCount", _read_token_count_header(headers))
        return self._build_reply(
            lambda: self._extract_vectors(answer, len(texts)), read_token_count(charged)
        )

    def _build_cohere_body(self, texts: list[str], purpose: Purpose) -> dict[str, Any]:
        body: dict[str, Any] = {
            "texts": texts,
            "input_type": INPUT_TYPES[purpose],
            "embedding_types": ["float"],
            **self.model.get_dimension_option("output_dimension"),
        }
        if _COHERE_3.search(self.model.name):
            self._require_short_texts(texts)
        else:
            body["truncate"] = "NONE"
        return body

    def _require_short_texts(self, texts: list[str]) -> None:
        if any(len(text) > _COHERE_3_CHARACTERS for text in texts):
            error = InputRejected(
                f"{self.server.id} rejects a text of more than 2,048 characters",
                hint="set a smaller limit for its chunker",
            )
            error.requests = 0
            raise error

    def _extract_vectors(self, answer: Mapping[str, Any], count: int) -> Sequence[Any]:
        single = answer.get("embedding")
        vectors = [single] if single is not None else answer["embeddings"]["float"]
        return self._require_count(vectors, count)


def _invoke_model(
    client: Any, model: str, body: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Any]:
    response = client.invoke_model(
        modelId=model,
        body=json.dumps(body),
        contentType="application/json",
        accept="application/json",
    )
    answer = json.loads(response["body"].read())
    if not isinstance(answer, dict):
        raise ValueError("the response is not a JSON object")  # noqa: TRY004 - a server's value
    return answer, response["ResponseMetadata"]["HTTPHeaders"]


def _read_token_count_header(headers: Mapping[str, str]) -> int | None:
    count = headers.get("x-amzn-bedrock-input-token-count", "")
    return int(count) if count.isdecimal() else None


class BedrockChat(BedrockConnection, SdkChatEndpoint[_BedrockClient]):
    """A chat model of Bedrock, through the Converse API; see SdkChatEndpoint."""

    async def _request_completion(self, sdk: _BedrockClient, prompt: Prompt) -> ChatReply:
        answer = await sdk.call(
            lambda client: client.converse(
                modelId=self._model,
                system=[{"text": prompt.instructions}],
                messages=[{"role": "user", "content": [{"text": prompt.text}]}],
                inferenceConfig={"maxTokens": prompt.max_tokens},
            )
        )
        usage = answer.get("usage", {})
        return ChatReply(
            "".join(part.get("text", "") for part in answer["output"]["message"]["content"]),
            read_token_count(usage.get("inputTokens")),
            read_token_count(usage.get("outputTokens")),
            cut=answer.get("stopReason") == "max_tokens",
        )


_COHERE_3_MODEL = KnownModel(
    1024,
    shortens=False,
    input_tokens=_COHERE_3_CHARACTERS,
    request_texts=96,
    task_types=True,
    price=Price(per_million=0.10),
)

BEDROCK = Provider(
    "bedrock",
    embedding=RemoteEmbedding(
        endpoint=BedrockEndpoint,
        models={
            "amazon.titan-embed-text-v2:0": KnownModel(
                1024, (256, 512, 1024), request_texts=1, price=Price(per_million=0.02)
            ),
            "amazon.titan-embed-text-v1": KnownModel(
                1536, shortens=False, request_texts=1, price=Price(per_million=0.10)
            ),
            "cohere.embed-v4:0": KnownModel(
                1536,
                (256, 512, 1024, 1536),
                input_tokens=128_000,
                request_texts=96,
                task_types=True,
                price=Price(per_million=0.12),
            ),
            "cohere.embed-multilingual-v3": _COHERE_3_MODEL,
            "cohere.embed-english-v3": _COHERE_3_MODEL,
        },
        unlisted=KnownModel(shortens=False, request_texts=1),
        default_model="amazon.titan-embed-text-v2:0",
        module=_MODULE,
    ),
    chat=ChatOffer(
        endpoint=BedrockChat,
        prices={
            "amazon.nova-pro-v1:0": build_chat_price(0.80, 3.20),
            "amazon.nova-lite-v1:0": build_chat_price(0.06, 0.24),
            "amazon.nova-micro-v1:0": build_chat_price(0.035, 0.14),
        },
        module=_MODULE,
    ),
    settings=BedrockSettings,
    extra=Extra("bedrock", "botocore"),
)
