"""The base of embedding endpoints: adds prefixes and unpacks replies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

import numpy.typing as npt

from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import Reply
from rag_assets.models.embedding.remote_model import RemoteModel
from rag_assets.models.transport.credentials import Credentials
from rag_assets.models.transport.sdk_connection import Sdk, SdkConnection, Server, encodable


class SdkEndpoint(SdkConnection[Sdk]):
    """A model at a provider, through the provider's SDK; see remote.Endpoint.

    Args:
        model: the model with the tenant's settings.
        credentials, allowed: see SdkConnection.
    """

    def __init__(
        self, model: RemoteModel, credentials: Credentials, allowed: PrivateEndpoints
    ) -> None:
        server = Server(
            model.embedder_id, model.base_url, model.key_optional, settings=model.settings
        )
        super().__init__(server, credentials, allowed)
        self.model = model

    async def request(self, texts: Sequence[str], purpose: Purpose) -> Reply:
        """Send a request; see remote.Endpoint."""
        prefix = self.model.prefix(purpose)
        prefixed = [encodable(prefix + text) for text in texts]
        return await self.exchange(lambda sdk: self._embed(sdk, prefixed, purpose))

    @abstractmethod
    async def _embed(self, sdk: Sdk, texts: list[str], purpose: Purpose) -> Reply:
        """Send a request; pass on the SDK's errors, raise ValueError for a malformed response."""

    def _reply(self, vectors: Callable[[], npt.ArrayLike], tokens: int | None) -> Reply:
        """Unpack the vectors of a response; if that fails, the error carries the charged tokens."""
        try:
            return Reply(vectors(), tokens)
        except Exception as error:
            failure = self._classified(error)
        failure.tokens = tokens or 0
        # Raise it outside the except block, so that it has no context, as in exchange.
        raise failure
