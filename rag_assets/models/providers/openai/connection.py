"""The connection to OpenAI, through its SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag_assets.common.errors import Fault, MalformedResponse, ProviderError
from rag_assets.models.transport.failures import Refusal, failure_of
from rag_assets.models.transport.sdk_connection import REQUEST_SECONDS, SdkConnection

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

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

    def _open(self, key: SecretStr | None, http: httpx2.AsyncClient) -> AsyncOpenAI:
        from openai import AsyncOpenAI

        secret = _NO_KEY if key is None else key.get_secret_value()
        return AsyncOpenAI(
            api_key=secret,
            # Set explicitly: otherwise the environment's OPENAI_CUSTOM_HEADERS could replace it.
            default_headers={"Authorization": f"Bearer {secret}"},
            base_url=self.server.base_url or self.own_server,
            http_client=http,
            timeout=REQUEST_SECONDS,
            max_retries=0,
        )

    def _refusal(self, error: Exception) -> ProviderError | None:
        from openai import APIResponseValidationError, APIStatusError

        if isinstance(error, APIResponseValidationError):
            return MalformedResponse(f"{self.server.id} returned a malformed response")
        if not isinstance(error, APIStatusError):
            return None
        faults = (_FAULTS.get(str(code)) for code in (error.code, error.type))
        refusal = Refusal(
            error.status_code, error.response.headers, fault=next(filter(None, faults), None)
        )
        return failure_of(refusal, self.server.id)


def without_key(sdk: AsyncOpenAI) -> dict[str, Any]:
    """Options of a request that remove the header of a key if there is no key."""
    from openai import Omit

    return {"extra_headers": {"Authorization": Omit()}} if sdk.api_key == _NO_KEY else {}
