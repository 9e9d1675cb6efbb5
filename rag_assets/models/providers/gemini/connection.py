"""The connection to Google Gemini, through its SDK."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from rag_assets.common.errors import Fault, ProviderError
from rag_assets.models.transport.failures import Refusal, failure_of
from rag_assets.models.transport.sdk_connection import SdkConnection

if TYPE_CHECKING:
    import httpx2
    from google.genai import Client

_REASONS: Mapping[str, Fault] = {
    "API_KEY_INVALID": "key",
    "API_KEY_SERVICE_BLOCKED": "key",
    "CONSUMER_SUSPENDED": "key",
    "SERVICE_DISABLED": "key",
}
_DELAY = re.compile(r"([0-9]+(?:\.[0-9]+)?)s")


class GeminiConnection(SdkConnection["Client"]):
    """A connection to Google, or to a server that implements its API; see SdkConnection."""

    own_server = "https://generativelanguage.googleapis.com"

    def _open(self, key: SecretStr | None, http: httpx2.AsyncClient) -> Client:
        from google.genai import Client
        from google.genai.types import HttpOptions

        if key is None:
            raise ValueError("Gemini requires a key")
        return Client(
            vertexai=False,
            api_key=key.get_secret_value(),
            http_options=HttpOptions(
                base_url=self.server.base_url or self.own_server,
                api_version="v1beta",
                httpx_async_client=http,
            ),
        )

    def _shut(self, sdk: Client) -> None:
        sdk.close()

    def _refusal(self, error: Exception) -> ProviderError | None:
        from google.genai.errors import APIError

        if not isinstance(error, APIError):
            return None
        details = list(_details(error.details))
        headers = getattr(error.response, "headers", None) or {}
        refusal = Refusal(error.code, headers, _fault(details), _delay(details))
        return failure_of(refusal, self.server.id)


def _details(body: Any) -> Iterable[Mapping[str, Any]]:
    """The typed details of an error, as google.rpc defines them."""
    error = body.get("error", body) if isinstance(body, Mapping) else {}
    details = error.get("details") if isinstance(error, Mapping) else None
    return (each for each in details or () if isinstance(each, Mapping))


def _fault(details: Iterable[Mapping[str, Any]]) -> Fault | None:
    for detail in details:
        if fault := _REASONS.get(str(detail.get("reason"))):
            return fault
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            # A quota per minute recovers by itself; one per day needs a person.
            if isinstance(violation, Mapping) and "PerDay" in str(violation.get("quotaId")):
                return "quota"
    return None


def _delay(details: Iterable[Mapping[str, Any]]) -> float | None:
    for detail in details:
        if match := _DELAY.fullmatch(str(detail.get("retryDelay"))):
            return float(match[1])
    return None
