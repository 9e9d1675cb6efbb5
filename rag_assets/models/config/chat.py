"""The configuration of a tenant's chat model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, model_validator

from rag_assets.models.chat.prices import ChatPrice
from rag_assets.models.chat.protocol import MOST_WRITTEN
from rag_assets.models.providers.base import require_one_credential, with_settings
from rag_assets.models.providers.registry import CHAT, PROVIDERS, provider_of
from rag_assets.models.transport.settings import (
    BaseUrl,
    ConnectionSettings,
    ModelName,
    key_reference,
)

if TYPE_CHECKING:
    ChatProviderName: TypeAlias = str
else:
    ChatProviderName = Literal[CHAT]

MOST_SECONDS = 60.0
"""Maximum time limit of an answer; a connection that is idle for this long is closed."""
MOST_SECONDS_OF_OWN = 1_800.0
"""Maximum time limit of an answer by a model whose speed is configured."""


class ChatSpeed(BaseModel):
    """The minimum speed of a model on the tenant's own machine.

    Attributes:
        read: prompt tokens that it reads per second.
        write: answer tokens that it writes per second.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: float = Field(default=30.0, ge=1, le=100_000)
    write: float = Field(default=3.0, ge=0.1, le=10_000)


class ChatModelConfig(BaseModel):
    """The chat model of a tenant's application, which also writes answers for it.

    The name alone is short for `{model: NAME}`.

    Attributes:
        model: the model's name at the provider. An embedding provider "auto" is derived from
            it.
        provider: "openai", "gemini", "azure", "vertex", "bedrock", "cohere", or, by their
            base_url, "ollama", "vllm" and "openai-compatible" (any server that implements OpenAI's
            API). By default inferred from the name of the model: OpenAI or Gemini.
        base_url: address of a server other than the provider's own; it has to be public and
            encrypted unless the operator allows it.
        api_key: the environment variable that contains the key, as $NAME, instead of a stored
            key.
        connection: settings of the provider, such as the region of a cloud; each provider's
            page lists them.
        prices: prices in dollars, if they differ from the listed prices or are not listed.
        max_tokens: maximum tokens of an answer, including hidden thinking.
        seconds: time limit of an answer; with `tokens_per_second`, the time allowed in addition
            to reading and writing, such as for loading the model.
        tokens_per_second: the minimum speed of a model on the tenant's own machine. The time
            limit then grows with the tokens of the request, up to half an hour, and the answer is
            streamed. A server that sends nothing for a minute while it writes counts as failed.
        context_window: number of tokens that the model reads at once, if it differs from the
            listed number or is not listed. A profile may limit the hits of a search to a share of
            it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: ModelName
    provider: ChatProviderName | None = None
    base_url: BaseUrl | None = None
    api_key: Annotated[str, key_reference("chat_model.api_key")] | None = None
    connection: SerializeAsAny[ConnectionSettings] | None = None
    prices: ChatPrice | None = None
    max_tokens: int = Field(default=2_048, ge=16, le=MOST_WRITTEN)
    seconds: float = Field(default=45.0, gt=0, le=MOST_SECONDS)
    tokens_per_second: ChatSpeed | None = None
    context_window: int | None = Field(default=None, ge=1_024, le=100_000_000)

    def seconds_for(self, prompt_tokens: int, max_tokens: int) -> float:
        """Return the time limit of an answer, in seconds.

        Args:
            prompt_tokens: tokens that the model reads, instructions included.
            max_tokens: tokens that the model may write.
        """
        speed = self.tokens_per_second
        if speed is None:
            return self.seconds
        tokens_seconds = prompt_tokens / speed.read + max_tokens / speed.write
        return min(MOST_SECONDS_OF_OWN, self.seconds + tokens_seconds)

    @model_validator(mode="before")
    @classmethod
    def _read_connection(cls, values: Any) -> Any:
        named = values.get("provider") if isinstance(values, dict) else None
        return with_settings(values, PROVIDERS.get(str(named)))

    @model_validator(mode="after")
    def _one_server(self) -> Self:
        require_one_credential(self.connection, self.api_key)
        if self.provider is None and self.base_url is not None:
            raise ValueError("a base_url needs the provider whose API the server implements")
        if self.tokens_per_second is not None and self.base_url is None:
            raise ValueError("tokens_per_second is of a server of one's own: it needs a base_url")
        if self.provider is None:
            return self
        if self.base_url is None and not provider_of(self.provider).own_server:
            raise ValueError(f"an {self.provider} server needs its base_url")
        return self


def from_name(value: Any) -> Any:
    """Expand a chat model that is given only by its name."""
    return {"model": value} if isinstance(value, str) else value
