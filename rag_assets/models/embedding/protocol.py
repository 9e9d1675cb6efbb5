"""The interfaces of embedders, spools and budgets, and embedders that wrap another embedder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]

PROBE_TEXT = "A sentence that any embedder takes."
"""Text that is sent to find out whether an embedder fails for the texts of a call, or for every
text."""

Purpose: TypeAlias = Literal["document", "query"]
"""The use of a text's vector: some models return different vectors for queries and documents."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Limits of an embedder's calls."""

    texts: int
    concurrency: int
    tokens: int | None = None
    """Maximum tokens of all texts of a call together; None for no limit."""
    input_tokens: int | None = None
    """Maximum tokens of one text; None for no limit."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An embedder's response to one call."""

    vectors: Vectors
    """One for each text, in order; shape (texts, dimensions)."""
    tokens: int
    requests: int = 1
    seconds: float | None = None
    """Duration of the successful attempt; None: the duration of the call is used."""


class Embedder(Protocol):
    """A model that turns texts into unit vectors; a vector depends only on its own text."""

    embedder_id: str
    """PROVIDER/MODEL@DIMENSIONS, and a digest of all else that determines a vector; vectors are
    stored under this id."""
    dimensions: int
    """Length of every vector."""
    limits: CallLimits
    """Limits of a call, and of concurrent calls."""

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
        is_bulk: bool = False,
    ) -> Answer:
        """Embed texts, and return their vectors in order, float32 and L2-normalised.

        Args:
            deadline: time.monotonic() after which the call does not start.
            is_bulk: whether no caller waits for the vectors, so that the call leaves room in
                the provider's limits for other calls.

        Raises:
            DeadlineExceeded: the call could not start before the deadline.
            RequestsStopped: no text can be embedded for now, or until a person changes
                something.
            InputRejected: one of these texts can never be embedded.
            MalformedResponse: the vectors are malformed, or do not match the texts.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimate for each text the number of tokens that the provider counts and charges for."""
        ...

    @property
    def languages(self) -> frozenset[str] | None:
        """Return ISO 639-1 codes of the languages in the model's training; None if unknown."""
        return None

    def compute_unread_share(self, texts: Sequence[str]) -> float | None:
        """Return the share of letters in words outside the vocabulary; None if unknown."""
        return None

    async def close(self) -> None:
        """Close this event loop's connections; a later call of embed() opens them again."""
        ...


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge of a call whose price was reserved before."""

    tokens: int = 0
    requests: int = 0
    texts: int = 0


class SpooledCall(Protocol):
    """Spool space that is reserved for the vectors of one call."""

    def fill(self, keys: Sequence[str], vectors: Vectors) -> None:
        """Keep the vectors in this space until they are stored."""
        ...

    def release(self) -> None:
        """Release the space, because the vectors are stored or the call returned no vectors."""
        ...


class Spool(Protocol):
    """A spool that keeps vectors from the end of a call until they are stored."""

    def reserve(self, texts: int) -> SpooledCall:
        """Reserve space for the vectors of a call; raise ServiceUnavailable if there is none."""
        ...


class Budget(Protocol):
    """A limit on spending: reserve a price before every call, and settle the charge after it."""

    def reserve(self, tokens: int) -> None:
        """Reserve the price of this many tokens; raise CapReached if it exceeds a spending cap."""
        ...

    def settle(self, reserved: int, charge: Charge) -> None:
        """Release the reservation of `reserved` tokens for a call, and record the call's charge."""
        ...


class EmbedOptions(TypedDict, total=False):
    """The keyword arguments of Embedder.embed."""

    purpose: Purpose
    deadline: float | None
    is_bulk: bool


class WrappedEmbedder(Embedder):
    """An embedder that delegates to another embedder; subclasses override some methods."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.embedder_id = embedder.embedder_id
        self.dimensions = embedder.dimensions
        self.limits = embedder.limits

    async def embed(self, texts: Sequence[str], **options: Unpack[EmbedOptions]) -> Answer:
        """Embed the texts with the wrapped embedder; see Embedder.embed."""
        return await self._embedder.embed(texts, **options)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the wrapped embedder's estimates; see Embedder.count_tokens."""
        return self._embedder.count_tokens(texts)

    @property
    def languages(self) -> frozenset[str] | None:
        """Return the wrapped embedder's languages; see Embedder.languages."""
        return self._embedder.languages

    def compute_unread_share(self, texts: Sequence[str]) -> float | None:
        """Return the share for the wrapped embedder; see Embedder.compute_unread_share."""
        return self._embedder.compute_unread_share(texts)

    async def close(self) -> None:
        """Close the wrapped embedder's connections; see Embedder.close."""
        await self._embedder.close()


def add_revision(embedder_id: str, revision: str | None) -> str:
    """Return an embedder's id, followed by ~REVISION if its tenant configured a revision."""
    return embedder_id if revision is None else f"{embedder_id}~{revision}"


class RevisedEmbedder(WrappedEmbedder):
    """An embedder with another id, for a model that was changed without being renamed."""

    def __init__(self, embedder: Embedder, revision: str) -> None:
        super().__init__(embedder)
        self.embedder_id = add_revision(embedder.embedder_id, revision)
