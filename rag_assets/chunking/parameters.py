"""What a tenant may set about chunking."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.errors import ConfigurationError

MIN_TOKENS = 16
MAX_TOKENS = 8191  # what the embedding models with the longest input take, less one


@dataclass(frozen=True, slots=True)
class ChunkParameters:
    """How documents are cut.

    Attributes:
        chunker: name of the chunker.
        max_tokens: cl100k_base tokens that no chunk exceeds.
        overlap: cl100k_base tokens, at most, that a chunk repeats of the one before it.

    Raises:
        ConfigurationError: a limit is out of range, or the overlap is over half of it.
    """

    chunker: str = "heading"
    max_tokens: int = 256
    overlap: int = 32

    def __post_init__(self) -> None:
        if not MIN_TOKENS <= self.max_tokens <= MAX_TOKENS:
            raise ConfigurationError(
                f"chunker: max_tokens is {self.max_tokens}",
                hint=f"choose {MIN_TOKENS} to {MAX_TOKENS} tokens",
            )
        if not 0 <= self.overlap <= self.max_tokens // 2:
            raise ConfigurationError(
                f"chunker: overlap is {self.overlap} with max_tokens {self.max_tokens}",
                hint=f"choose 0 to {self.max_tokens // 2} tokens, half of max_tokens at most",
            )
