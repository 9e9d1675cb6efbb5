"""OpenAI: its connection, embeddings, chat models, batches, and the table of its models.

Source of models and limits: the references of its API. Source of prices, in dollars per million
tokens: https://platform.openai.com/docs/pricing, for embeddings as of November 2026, for chat
models (up to 200,000 tokens of input) as of March 2026. `embedder.price` and `chat_model.prices` in
tenants.yaml replace them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import time
from binascii import a2b_base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import SecretStr

from rag_assets.common.errors import (
    BatchLost,
    Fault,
    MalformedResponse,
    ProviderError,
    ProviderUnavailable,
    WrongShape,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat import (
    MAX_ANSWER_BYTES,
    MAX_STREAM_BYTES,
    ChatReply,
    Prompt,
    SdkChatEndpoint,
)
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import (
    BatchResult,
    BatchStatus,
    EmbeddingReply,
    KnownModel,
    RemoteModel,
    SdkEndpoint,
)
from rag_assets.models.prices import Price, build_chat_price
from rag_assets.models.providers.base import REMOTE_OPTIONS, ChatOffer, Provider, RemoteEmbedding
from rag_assets.models.transport.connection import (
    REQUEST_SECONDS,
    SdkConnection,
    Server,
    read_token_count,
    replace_surrogates,
)
from rag_assets.models.transport.failures import Refusal, classify_refusal
from rag_assets.models.transport.settings import Credentials

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI
    from openai.types import Batch

T = TypeVar("T")

_NO_KEY = "none"
_FAULTS: dict[str, Fault] = {
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "model_not_found": "model",
    "invalid_model": "model",
    "invalid_api_key": "key",
    "account_deactivated": "key",
}


class OpenAIConnection(SdkConnection["AsyncOpenAI"]):
    """A connection to OpenAI, or to a compatible server; see SdkConnection."""

    own_server = "https://api.openai.com/v1"

    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        secret = _NO_KEY if key is None else key.get_secret_value()
        return AsyncOpenAI(
            api_key=secret,
            # Set explicitly, since the environment's OPENAI_CUSTOM_HEADERS could replace it
            # otherwise.
            default_headers={"Authorization": f"Bearer {secret}"},
            base_url=self.server.base_url or self.own_server,
            http_client=http,
            timeout=REQUEST_SECONDS,
            max_retries=0,
        )

    def _convert_error(self, error: Exception) -> ProviderError | None:
        from openai import APIResponseValidationError, APIStatusError

        if isinstance(error, APIResponseValidationError):
            return MalformedResponse(f"{self.server.id} returned a malformed response")
        if not isinstance(error, APIStatusError):
            return None
        faults = (_FAULTS.get(str(code)) for code in (error.code, error.type))
        refusal = Refusal(
            error.status_code, error.response.headers, fault=next(filter(None, faults), None)
        )
        return classify_refusal(refusal, self.server.id)


def _build_key_options(sdk: AsyncOpenAI) -> dict[str, Any]:
    """Return request options; they omit the header with the key if the SDK has no key."""
    from openai import Omit

    return {"extra_headers": {"Authorization": Omit()}} if sdk.api_key == _NO_KEY else {}


class OpenAIEndpoint(OpenAIConnection, SdkEndpoint["AsyncOpenAI"]):
    """An embedding model of OpenAI; see SdkEndpoint."""

    encoding: Literal["base64", "float"] = "base64"

    async def _embed(self, sdk: AsyncOpenAI, texts: list[str], purpose: Purpose) -> EmbeddingReply:
        answer = await sdk.embeddings.with_raw_response.create(
            model=self.model.name,
            input=texts,
            encoding_format=self.encoding,
            **_build_key_options(sdk),
            **self.model.get_dimension_option("dimensions"),
        )
        # Parse the JSON directly: the SDK's own objects would take twice as long as everything
        # else.
        body = json.loads(answer.content)
        return self._build_reply(
            lambda: order_vectors(body["data"], len(texts), self.model.embedder_id),
            _read_charged_token_count(body),
        )


def order_vectors(data: Sequence[Any], count: int, embedder: str) -> list[Any]:
    """Return a response's vectors in the order of the texts; raise WrongShape if one is missing."""
    by_index = {item["index"]: item.get("embedding") for item in data}
    if len(data) != count or by_index.keys() != set(range(count)):
        raise WrongShape(
            f"{embedder} did not return exactly one vector for each of {count} texts; it returned"
            f" {len(data)}",
            hint="check the embedder's model and base_url",
        )
    return [_unpack_vector(by_index[position]) for position in range(count)]


def _unpack_vector(vector: Any) -> npt.NDArray[np.float32] | list[float]:
    """Return a vector that was sent as numbers or in base64; [] if it is neither."""
    if isinstance(vector, str):
        try:
            return np.frombuffer(a2b_base64(vector, strict_mode=True), dtype="<f4")
        except ValueError:
            return []
    return vector if isinstance(vector, list) else []


def _read_charged_token_count(body: Mapping[str, Any]) -> int | None:
    """Return the number of tokens charged; None if the response does not state it."""
    usage = body.get("usage") or {}
    return read_token_count(usage.get("total_tokens") or usage.get("prompt_tokens"))


_BETWEEN_TOKENS_SECONDS = 60.0
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""Thinking that some self-hosted servers put in front of the model's answer."""


class OpenAIChat(OpenAIConnection, SdkChatEndpoint["AsyncOpenAI"]):
    """A chat model of OpenAI; see SdkChatEndpoint."""

    length_option = "max_completion_tokens"

    def __init__(
        self, server: Server, credentials: Credentials, allowed: PrivateEndpoints, model: str
    ) -> None:
        super().__init__(server, credentials, allowed, model)
        if server.silent_seconds is not None:
            # Each token comes in an event with more fields, so the size of the text is counted
            # separately.
            self.most_bytes = MAX_STREAM_BYTES

    async def _request_completion(self, sdk: AsyncOpenAI, prompt: Prompt) -> ChatReply:
        options: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": prompt.instructions},
                {"role": "user", "content": prompt.text},
            ],
            self.length_option: prompt.max_tokens,
            **_build_key_options(sdk),
        }
        if self.server.silent_seconds is not None:
            return await _read_stream(sdk, options)
        answer = await sdk.chat.completions.create(**options)
        choice = answer.choices[0]
        text = choice.message.content or ""
        if not isinstance(text, str):
            raise ValueError("the answer has no text")  # noqa: TRY004 - the value comes from a server
        return _build_chat_reply(text, answer.usage, choice.finish_reason)


async def _read_stream(sdk: AsyncOpenAI, options: dict[str, Any]) -> ChatReply:
    """Read an answer that is streamed token by token, and return it as a whole.

    Raise a TimeoutError if a minute passes without data after the first token.
    """
    stream = await sdk.chat.completions.create(
        **options, stream=True, stream_options={"include_usage": True}
    )
    parts: list[str] = []
    size = 0
    reason: str | None = None
    usage: object = None
    has_text = False
    async with stream:
        chunks = aiter(stream)
        while True:
            # For reading the prompt, only the limit of the whole answer applies.
            async with asyncio.timeout(_BETWEEN_TOKENS_SECONDS if has_text else None):
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            usage = chunk.usage or usage
            for choice in chunk.choices[:1]:
                part = choice.delta.content or ""
                has_text = has_text or bool(part)
                parts.append(part)
                size += len(part.encode("utf-8", "replace"))
                if size > MAX_ANSWER_BYTES:
                    raise MalformedResponse(
                        f"a streamed answer is longer than {MAX_ANSWER_BYTES:,} bytes"
                    )
                reason = choice.finish_reason or reason
    if reason is None:
        raise ValueError("the stream ended before the answer")
    return _build_chat_reply("".join(parts), usage, reason)


def _build_chat_reply(text: str, usage: object, finish_reason: str) -> ChatReply:
    return ChatReply(
        _THOUGHTS.sub("", text),
        read_token_count(getattr(usage, "prompt_tokens", None)),
        read_token_count(getattr(usage, "completion_tokens", None)),
        cut=finish_reason == "length",
    )


_TAG = "rag_assets"
_PATH: Final = "/v1/embeddings"
_TRANSFER_SECONDS = 900.0
_BATCHES_PER_PAGE = 100
# Ids, states and codes are logged, stored and shown, and a server could return the key in place of
# one.
_BATCH_ID = re.compile(r"batch_[A-Za-z0-9]{1,80}")
_FILE_ID = re.compile(r"file-[A-Za-z0-9]{1,80}")
_RUNNING_STATES = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
_ENDED_STATES = frozenset({"completed", "failed", "expired", "cancelled"})
_CODES = frozenset(
    {"token_limit_exceeded", "request_limit_exceeded", "rate_limit_exceeded", "too_many_tasks"}
    | {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
    | {"model_not_found", "invalid_model", "mismatched_model", "unsupported_model"}
    | {"empty_file", "file_not_found", "invalid_file", "invalid_json_line", "duplicate_custom_id"}
    | {"invalid_url", "invalid_method", "invalid_request", "missing_required_parameter"}
    | {"server_error", "internal_error", "batch_expired", "batch_cancelled"}
)


class OpenAIBatches(OpenAIEndpoint):
    """One model's batch API; each text is its own request, so a rejected one affects no other."""

    def __init__(
        self, model: RemoteModel, credentials: Credentials, allowed: PrivateEndpoints
    ) -> None:
        super().__init__(model, credentials, allowed)
        self.dimensions = model.dimensions
        self._files = ResultFiles(model, credentials, allowed)

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """Upload texts and create their batch; see BatchApi.submit."""
        content = b"".join(self._render_request_lines(items))

        async def create(sdk: AsyncOpenAI) -> str:
            file = await sdk.files.create(file=("texts.jsonl", content), purpose="batch")
            batch = await sdk.batches.create(
                input_file_id=_require_id_pattern(file.id, _FILE_ID),
                endpoint=_PATH,
                completion_window="24h",
                metadata={_TAG: tag},
            )
            return _require_id_pattern(batch.id, _BATCH_ID)

        return await self._request_batch(create, seconds=_TRANSFER_SECONDS)

    async def find(self, tag: str, since: datetime) -> str | None:
        """Return the id of the newest batch with this tag; see BatchApi.find."""

        async def search(sdk: AsyncOpenAI) -> str | None:
            async for batch in sdk.batches.list(limit=_BATCHES_PER_PAGE):
                if (batch.metadata or {}).get(_TAG) == tag:
                    return _require_id_pattern(batch.id, _BATCH_ID)
                if batch.created_at < since.timestamp():
                    return None
            return None

        return await self._request_batch(search)

    async def status(self, batch_id: str) -> BatchStatus:
        """Request the status of a batch; see BatchApi.status."""
        try:
            return await self._retrieve_batch(batch_id, _read_status)
        except BatchLost as error:
            return BatchStatus("failed", error.message)

    async def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """Read the result files of a batch, line by line; see BatchApi.results."""
        for file_id in await self._retrieve_batch(batch_id, _list_files):
            async for result in self._files.read(file_id):
                yield result

    async def close(self) -> None:
        """Close connections; see BatchApi.close."""
        await self._files.close()
        await super().close()

    async def _retrieve_batch(self, batch_id: str, read: Callable[[Batch], T]) -> T:
        async def retrieve(sdk: AsyncOpenAI) -> T:
            from openai import NotFoundError

            try:
                batch = await sdk.batches.retrieve(batch_id)
            except NotFoundError:
                raise BatchLost(
                    "the provider does not have the batch: it was deleted, or belongs to a"
                    " different account"
                ) from None
            return read(batch)

        return await self._request_batch(retrieve)

    async def _request_batch(
        self, send: Callable[[AsyncOpenAI], Awaitable[T]], *, seconds: float | None = None
    ) -> T:
        """Send a request about a batch; a malformed response is a transient failure."""
        try:
            return await self.exchange(send, seconds=seconds)
        except MalformedResponse as error:
            failure = ProviderUnavailable(f"{error.message} to a request about a batch")
        raise failure

    def _render_request_lines(self, items: Sequence[EmbedItem]) -> Iterator[bytes]:
        options = {
            "model": self.model.name,
            "encoding_format": "base64",
            **self.model.get_dimension_option("dimensions"),
        }
        prefix = self.model.get_prefix("document")
        for item in items:
            body = {"input": replace_surrogates(prefix + item.text), **options}
            line = {"custom_id": item.key, "method": "POST", "url": _PATH, "body": body}
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _read_status(batch: Batch) -> BatchStatus:
    if batch.status in _RUNNING_STATES:
        return BatchStatus("under way")
    if batch.status not in _ENDED_STATES:
        raise ValueError("the batch has an unknown state")
    if _list_files(batch) or batch.status == "completed":
        return BatchStatus("ended")
    return BatchStatus("failed", _read_failure_code(batch))


def _list_files(batch: Batch) -> list[str]:
    file_ids = (batch.output_file_id, batch.error_file_id)
    return [_require_id_pattern(file_id, _FILE_ID) for file_id in file_ids if file_id]


def _read_failure_code(batch: Batch) -> str:
    """Return the provider's code for a batch's failure, since the message may quote a text."""
    errors = batch.errors.data if batch.errors and batch.errors.data else []
    return next((error.code for error in errors if error.code in _CODES), batch.status)


def _require_id_pattern(id_: str, form: re.Pattern[str]) -> str:
    """Return an id; raise a ValueError if it does not match the pattern."""
    if not form.fullmatch(id_):
        raise ValueError("the id has an invalid form")
    return id_


_READ_SECONDS = 1_800.0
"""Time limit in seconds for a whole file, since a server may send one byte per minute for ever."""
_LINE_BYTES = 1024 * 1024
"""Maximum bytes of a line: many times a vector of 4,096 dimensions as JSON."""
_MAX_CHARGED_TOKENS = 1_000_000
"""Largest reported number of tokens of a text that is plausible; no model reads as many."""
_HTTP_OK = 200


class ResultFiles(OpenAIEndpoint):
    """A reader of the result files of batches, which are a provider's only large responses."""

    most_bytes = 1024 * 1024 * 1024
    """Room for 50,000 vectors of 3,072 dimensions in base64."""

    async def read(self, file_id: str) -> AsyncIterator[BatchResult]:
        """Yield the result of each text in a file; raise BatchLost if the file was deleted."""
        from openai import NotFoundError

        failure: ProviderError
        async with self._use_client() as client:
            try:
                async with client.sdk.files.with_streaming_response.content(file_id) as response:
                    async for line in _split_lines(response.iter_bytes()):
                        yield _parse_result(line, self.model.embedder_id)
            except NotFoundError:
                failure = BatchLost("the results of the batch were deleted")
            except Exception as error:
                failure = self._classify_error(error)
            else:
                return
        raise failure


async def _split_lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a byte stream, within a time limit for the whole stream."""
    until = time.monotonic() + _READ_SECONDS
    line = bytearray()
    while True:
        async with asyncio.timeout(until - time.monotonic()):
            part = await anext(parts, None)
        if part is None:
            break
        *ended, partial_line = part.split(b"\n")
        for end in ended:
            line += end
            if line.strip():
                yield bytes(line)
            line.clear()
        line += partial_line
        if len(line) > _LINE_BYTES:
            raise MalformedResponse(
                f"a batch's results have a line of more than {_LINE_BYTES:,} bytes"
            )
    if line.strip():
        yield bytes(line)


def _parse_result(line: bytes, embedder_id: str) -> BatchResult:
    """Return the result of one text from a line of a result file."""
    try:
        answer = json.loads(line)
        key = str(answer["custom_id"])
        response = answer.get("response") or {}
        if answer.get("error") or response.get("status_code") != _HTTP_OK:
            return BatchResult(key, None)
        body = response["body"]
        [data] = body["data"]
        return BatchResult(key, _parse_vector(data["embedding"]), _read_result_token_count(body))
    except Exception:  # a line with huge numbers or deep nesting can fail in any way
        raise MalformedResponse(
            f"the results of a batch of {embedder_id} have a malformed line"
        ) from None


def _parse_vector(embedding: Any) -> npt.ArrayLike:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return np.asarray(embedding, dtype=np.float32)


def _read_result_token_count(body: dict[str, Any]) -> int:
    tokens = int((body.get("usage") or {}).get("total_tokens") or 0)
    if not 0 <= tokens <= _MAX_CHARGED_TOKENS:
        raise ValueError("the number of tokens is invalid")
    return tokens


_MAX_REQUEST_TOKENS = 300_000
MODULE = "openai.resources"
"""Module of the SDK to import in advance; the SDK imports its resources only when they are used."""

EMBEDDING = RemoteEmbedding(
    endpoint=OpenAIEndpoint,
    models={
        "text-embedding-3-small": KnownModel(
            1536,
            request_tokens=_MAX_REQUEST_TOKENS,
            price=Price(per_million=0.02, batch_per_million=0.01),
        ),
        "text-embedding-3-large": KnownModel(
            3072,
            request_tokens=_MAX_REQUEST_TOKENS,
            price=Price(per_million=0.13, batch_per_million=0.065),
        ),
        "text-embedding-ada-002": KnownModel(
            1536, shortens=False, request_tokens=_MAX_REQUEST_TOKENS
        ),
    },
    unlisted=KnownModel(shortens=False),
    default_model="text-embedding-3-small",
    auto_dimensions=1536,
    batch_api=OpenAIBatches,
    options=REMOTE_OPTIONS | {"batch_above"},
    module=MODULE,
)


CHAT_PRICES = {
    "gpt-5": build_chat_price(1.25, 10.0),
    "gpt-5-mini": build_chat_price(0.25, 2.0),
    "gpt-5-nano": build_chat_price(0.05, 0.40),
    "gpt-4.1": build_chat_price(2.0, 8.0),
    "gpt-4.1-mini": build_chat_price(0.40, 1.60),
    "gpt-4.1-nano": build_chat_price(0.10, 0.40),
    "gpt-4o": build_chat_price(2.50, 10.0),
    "gpt-4o-mini": build_chat_price(0.15, 0.60),
}

OPENAI = Provider(
    "openai",
    embedding=EMBEDDING,
    chat=ChatOffer(endpoint=OpenAIChat, prices=CHAT_PRICES, module=MODULE),
    # OpenAI's model names, also with a gateway's prefix. gpt-oss is left out, since other providers
    # serve it.
    chat_names=re.compile(r"(^|[/.:])(gpt-(?!oss)|chatgpt-|codex-|o[1-9](-|$))"),
)
