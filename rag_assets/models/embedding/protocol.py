"""What the chain asks of an embedder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]

Purpose: TypeAlias = Literal["document", "query"]
"""What a text is embedded for: some models want to know, and make other vectors of it."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How much an embedder takes at once.

    Attributes:
        texts: in a call at most.
        concurrency: calls that may be under way at once.
        tokens: of all texts of a call together; None for any number.
        input_tokens: of a text; None for any number.
    """

    texts: int
    concurrency: int
    tokens: int | None = None
    input_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came back with.

    Attributes:
        vectors: one for each text, in order; shape (texts, dimensions).
        tokens: that the call is charged for.
        requests: attempts that it took.
    """

    vectors: Vectors
    tokens: int
    requests: int = 1


class Embedder(Protocol):
    """Turns texts into unit vectors; a vector depends on its own text alone.

    Attributes:
        embedder_id: provider/model@dims and a digest of all else that determines a vector
            (weights, prefix, truncation, pooling); vectors are kept under it.
        dimensions: length of every vector.
        limits: how much a call may ask for, and how many calls at once.
    """

    @property
    def embedder_id(self) -> str:
        """What the vectors are kept under."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    @property
    def limits(self) -> CallLimits:
        """How much it takes at once."""
        ...

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
    ) -> Answer:
        """Vectors of these texts, float32, L2-normalised, in order.

        Args:
            texts: within the limits of a call.
            purpose: what they are embedded for.
            deadline: time.monotonic() after which it need not begin; once begun, it ends.

        Raises:
            OutOfTime: it would have to wait for its turn beyond the deadline.
            EmbeddingStopped: it takes nothing more for now, or until a person changes something.
            InputRejected: one of these texts can never be embedded.
            BadVectors: what came back is not what was asked for.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens the provider will count (and charge) for each text, as near as can be told."""
        ...

    async def close(self) -> None:
        """Let go of connections, in the loop that embed was called in.

        A later call to embed opens them again.
        """
        ...


@dataclass(frozen=True, slots=True)
class Charge:
    """What became of a call whose price was set aside.

    Attributes:
        tokens: that it was charged for.
        requests: attempts that it took, failed ones included.
        texts: that came back as vectors.
    """

    tokens: int = 0
    requests: int = 0
    texts: int = 0


class Budget(Protocol):
    """What may be spent; asked before every call, told after it."""

    def reserve(self, tokens: int) -> None:
        """Set the price of a call aside.

        Raises:
            CapReached: there is not enough left.
        """
        ...

    def settle(self, reserved: int, charge: Charge) -> None:
        """Give back the tokens that were set aside for a call, and take what it was charged."""
        ...
