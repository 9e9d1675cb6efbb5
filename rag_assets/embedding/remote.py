"""What an embedding provider is asked over the network, and how its calls are made to last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy.typing as npt

from rag_assets.embedding.protocol import Purpose


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request came back with.

    Attributes:
        vectors: one for each text, in the order of the texts; not checked yet.
        tokens: that the provider charges for; None where it does not say.
    """

    vectors: npt.ArrayLike
    tokens: int | None


class Endpoint(Protocol):
    """One model at one provider: a request goes out once, and its failure is given a name.

    It neither waits, nor tries again, nor bounds how many requests are under way.
    """

    async def request(self, texts: Sequence[str], purpose: Purpose) -> Reply:
        """Ask for the vectors of these texts, once.

        Raises:
            EmbedderUnavailable: passing: no answer, cut off, too many requests, an error of the
                provider's; retry_after as it says.
            EmbedderRefused: until a person changes something: the key, the model, the quota.
            InputRejected: one of these texts can never be embedded.
            BadVectors: the answer is malformed, or has not one vector for each text.
        """
        ...

    async def close(self) -> None:
        """Let go of connections, in the loop that request was called in.

        A later request opens them again.
        """
        ...
