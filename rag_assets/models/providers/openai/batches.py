"""OpenAI's batch API: a file of requests, processed within a day at half the price."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rag_assets.common.errors import BatchLost, MalformedResponse, ProviderUnavailable
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.embedding.batch_api import BatchResult, BatchStatus
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.remote_model import RemoteModel
from rag_assets.models.providers.openai.batch_results import ResultFiles
from rag_assets.models.providers.openai.embedding import OpenAIEndpoint
from rag_assets.models.transport.credentials import Credentials
from rag_assets.models.transport.sdk_connection import encodable

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

T = TypeVar("T")

_TAG = "rag_assets"
_PATH: Final = "/v1/embeddings"
_TRANSFER_SECONDS = 900.0
_PAGE = 100
# Ids, states and codes are logged, stored and shown: a server could return the key in their place.
_BATCH_ID = re.compile(r"batch_[A-Za-z0-9]{1,80}")
_FILE_ID = re.compile(r"file-[A-Za-z0-9]{1,80}")
_UNDER_WAY = frozenset({"validating", "in_progress", "finalizing", "cancelling"})
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
_CODES = frozenset(
    {"token_limit_exceeded", "request_limit_exceeded", "rate_limit_exceeded", "too_many_tasks"}
    | {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
    | {"model_not_found", "invalid_model", "mismatched_model", "unsupported_model"}
    | {"empty_file", "file_not_found", "invalid_file", "invalid_json_line", "duplicate_custom_id"}
    | {"invalid_url", "invalid_method", "invalid_request", "missing_required_parameter"}
    | {"server_error", "internal_error", "batch_expired", "batch_cancelled"}
)


class OpenAIBatches(OpenAIEndpoint):
    """One model's batch API; see batch_api.BatchApi.

    Each text is a separate request, so that a refused one does not affect the others.
    """

    def __init__(
        self, model: RemoteModel, credentials: Credentials, allowed: PrivateEndpoints
    ) -> None:
        super().__init__(model, credentials, allowed)
        self._files = ResultFiles(model, credentials, allowed)

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        return self.model.dimensions

    async def submit(self, items: Sequence[EmbedItem], tag: str) -> str:
        """Upload texts and create their batch; see BatchApi.submit."""
        content = b"".join(self._lines_of(items))

        async def create(sdk: AsyncOpenAI) -> str:
            file = await sdk.files.create(file=("texts.jsonl", content), purpose="batch")
            batch = await sdk.batches.create(
                input_file_id=_checked(file.id, _FILE_ID),
                endpoint=_PATH,
                completion_window="24h",
                metadata={_TAG: tag},
            )
            return _checked(batch.id, _BATCH_ID)

        return await self._batch_request(create, seconds=_TRANSFER_SECONDS)

    async def find(self, tag: str, since: datetime) -> str | None:
        """Search the account's batches, the newest first; see BatchApi.find."""

        async def search(sdk: AsyncOpenAI) -> str | None:
            async for batch in sdk.batches.list(limit=_PAGE):
                if (batch.metadata or {}).get(_TAG) == tag:
                    return _checked(batch.id, _BATCH_ID)
                if batch.created_at < since.timestamp():
                    return None
            return None

        return await self._batch_request(search)

    async def status(self, batch_id: str) -> BatchStatus:
        """Request its status; see BatchApi.status."""
        try:
            return await self._of_batch(batch_id, _status)
        except BatchLost as error:
            return BatchStatus("failed", error.message)

    async def results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """Read its result files, line by line; see BatchApi.results."""
        for file_id in await self._of_batch(batch_id, _files_of):
            async for result in self._files.read(file_id):
                yield result

    async def close(self) -> None:
        """Close connections; see BatchApi.close."""
        await self._files.close()
        await super().close()

    async def _of_batch(self, batch_id: str, read: Callable[[Batch], T]) -> T:
        async def retrieve(sdk: AsyncOpenAI) -> T:
            from openai import NotFoundError

            try:
                batch = await sdk.batches.retrieve(batch_id)
            except NotFoundError:
                raise BatchLost(
                    "the provider does not have it: it was deleted, or belongs to another account"
                ) from None
            return read(batch)

        return await self._batch_request(retrieve)

    async def _batch_request(
        self, send: Callable[[AsyncOpenAI], Awaitable[T]], *, seconds: float | None = None
    ) -> T:
        """Send a request about a batch; a malformed response is a transient failure."""
        try:
            return await self.exchange(send, seconds=seconds)
        except MalformedResponse as error:
            failure = ProviderUnavailable(f"{error.message} to a request about a batch")
        raise failure

    def _lines_of(self, items: Sequence[EmbedItem]) -> Iterator[bytes]:
        options: dict[str, Any] = {"model": self.model.name, "encoding_format": "base64"}
        if self.model.requested_dimensions is not None:
            options["dimensions"] = self.model.requested_dimensions
        prefix = self.model.prefix("document")
        for item in items:
            body = {"input": encodable(prefix + item.text), **options}
            line = {"custom_id": item.key, "method": "POST", "url": _PATH, "body": body}
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"


def _status(batch: Batch) -> BatchStatus:
    if batch.status in _UNDER_WAY:
        return BatchStatus("under way")
    if batch.status not in _OVER:
        raise ValueError("not a state of a batch")
    if _files_of(batch) or batch.status == "completed":
        return BatchStatus("ended")
    return BatchStatus("failed", _code(batch))


def _files_of(batch: Batch) -> list[str]:
    found = (batch.output_file_id, batch.error_file_id)
    return [_checked(file_id, _FILE_ID) for file_id in found if file_id]


def _code(batch: Batch) -> str:
    """The provider's code for a batch's failure; its messages may quote a text."""
    errors = batch.errors.data if batch.errors and batch.errors.data else []
    return next((error.code for error in errors if error.code in _CODES), batch.status)


def _checked(id_: str, form: re.Pattern[str]) -> str:
    """Validate the form of an id.

    Raises:
        ValueError: it has another form.
    """
    if not form.fullmatch(id_):
        raise ValueError("not an id")
    return id_
