"""What the chain asks of an embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Vectors: TypeAlias = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors; a vector depends on its own text alone.

    Attributes:
        embedder_id: provider/model@dims and a digest of all else that determines a vector
            (weights, prefix, truncation, pooling); vectors are kept under it.
        dimensions: length of every vector.
        batch_size: how many texts a call takes at most.
        concurrency: how many calls may be under way at once.
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
    def batch_size(self) -> int:
        """Texts a call takes at most."""
        ...

    @property
    def concurrency(self) -> int:
        """Calls that may be under way at once."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of shape (len(texts), dimensions), float32, L2-normalised, in order.

        Raises:
            EmbedderUnavailable: try again later.
            InputRejected: one of these texts can never be embedded.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens the provider will count (and charge) for each text."""
        ...
