"""Chunkers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rag_assets.chunking.heading import HeadingChunker
from rag_assets.chunking.parameters import ChunkParameters
from rag_assets.chunking.passages import Chunker
from rag_assets.errors import ConfigurationError

# A new chunker is a line here; raise CHUNKER_VERSION (chunk_set) when an old one cuts differently.
CHUNKERS: Mapping[str, Callable[[ChunkParameters], Chunker]] = {
    "heading": lambda parameters: HeadingChunker(parameters.max_tokens, parameters.overlap),
}


def chunker_for(parameters: ChunkParameters) -> Chunker:
    """The chunker that parameters name.

    Raises:
        ConfigurationError: there is none of that name.
    """
    make = CHUNKERS.get(parameters.chunker)
    if make is None:
        raise ConfigurationError(
            f"no chunker is named {parameters.chunker!r}",
            hint=f"choose one of: {', '.join(sorted(CHUNKERS))}",
        )
    return make(parameters)
