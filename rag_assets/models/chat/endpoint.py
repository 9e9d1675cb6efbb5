"""The base of chat endpoints that send prompts through a provider's SDK."""

from __future__ import annotations

from abc import abstractmethod

from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat.protocol import Prompt
from rag_assets.models.chat.remote import MOST_ANSWER_BYTES, Reply
from rag_assets.models.transport.credentials import Credentials
from rag_assets.models.transport.sdk_connection import Sdk, SdkConnection, Server


class SdkChatEndpoint(SdkConnection[Sdk]):
    """A chat model at a provider, through the provider's SDK; see remote.ChatEndpoint.

    Args:
        server, credentials, allowed: see SdkConnection.
        model: the model's name at the provider.
    """

    most_bytes = MOST_ANSWER_BYTES

    def __init__(
        self, server: Server, credentials: Credentials, allowed: PrivateEndpoints, model: str
    ) -> None:
        super().__init__(server, credentials, allowed)
        self._model = model

    async def request(self, prompt: Prompt, seconds: float) -> Reply:
        """Send a request and return its response; see remote.ChatEndpoint."""
        return await self.exchange(lambda sdk: self._complete(sdk, prompt), seconds=seconds)

    @abstractmethod
    async def _complete(self, sdk: Sdk, prompt: Prompt) -> Reply:
        """Send a request; pass on the SDK's errors, raise ValueError for a malformed response."""
