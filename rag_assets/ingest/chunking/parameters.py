"""What may be chosen about chunking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Self

from rag_assets.common.errors import ConfigurationError

MAX_TOKENS = 8191  # what the embedding models with the longest input take, less one
_TOKENS_A_CHARACTER = 4  # at most: a token has a byte or more, a character four or fewer

Unit = Literal["tokens", "characters"]


@dataclass(frozen=True, slots=True)
class _Kind:
    """The settings of one chunker."""

    unit: Unit
    limit: int
    overlap: int
    overlaps: bool = True

    @property
    def smallest(self) -> int:
        return 16 if self.unit == "tokens" else 64

    @property
    def largest(self) -> int:
        return MAX_TOKENS if self.unit == "tokens" else MAX_TOKENS // _TOKENS_A_CHARACTER

    @property
    def settings(self) -> str:
        return f"max_{self.unit} and overlap" if self.overlaps else f"max_{self.unit}"


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "heading": _Kind("tokens", 1200, 150),
        "recursive": _Kind("tokens", 512, 64),
        "sentence": _Kind("characters", 2000, 200),
        "record": _Kind("tokens", 1200, 0, overlaps=False),
    }
)


@dataclass(frozen=True, slots=True)
class ChunkParameters:
    """How a document is cut.

    Attributes:
        chunker: name of the chunker.
        limit: cl100k_base tokens, or characters (Unicode code points), that no chunk exceeds;
            the chunker decides which. A limit in characters is small enough to keep every chunk
            within MAX_TOKENS, whatever the characters.
        overlap: in the same unit, what a chunk repeats at most of the one before it.

    Raises:
        ConfigurationError: there is no such chunker, a limit is out of range, or the overlap is
            over half of it.
    """

    chunker: str
    limit: int
    overlap: int

    def __post_init__(self) -> None:
        kind = _kind(self.chunker)
        if not kind.smallest <= self.limit <= kind.largest:
            raise ConfigurationError(
                f"chunker {self.chunker}: max_{kind.unit} is {self.limit}",
                hint=f"choose {kind.smallest} to {kind.largest} {kind.unit}",
            )
        most = self.limit // 2 if kind.overlaps else 0
        if not 0 <= self.overlap <= most:
            raise ConfigurationError(
                f"chunker {self.chunker}: overlap is {self.overlap} with max_{kind.unit} "
                f"{self.limit}",
                hint=f"choose 0 to {most} {kind.unit}",
            )

    @classmethod
    def of(
        cls,
        chunker: str = "heading",
        *,
        max_tokens: int | None = None,
        max_characters: int | None = None,
        overlap: int | None = None,
    ) -> Self:
        """Parameters by the names that people use; what is left out takes the chunker's default.

        Args:
            chunker: its name.
            max_tokens: the limit of a chunker that counts tokens.
            max_characters: that of one that counts characters.
            overlap: in the same unit; by default in proportion to the limit.

        Raises:
            ConfigurationError: see above, or the chunker has no such setting.
        """
        kind = _kind(chunker)
        foreign = {
            "max_tokens": max_tokens is not None and kind.unit != "tokens",
            "max_characters": max_characters is not None and kind.unit != "characters",
            "overlap": overlap is not None and not kind.overlaps,
        }
        for name in (name for name, given in foreign.items() if given):
            raise ConfigurationError(
                f"chunker {chunker}: {name} is none of its settings",
                hint=f"it takes {kind.settings}",
            )
        given = max_tokens if kind.unit == "tokens" else max_characters
        limit = kind.limit if given is None else given
        usual = kind.overlap * limit // kind.limit
        return cls(chunker, limit, usual if overlap is None else overlap)

    @property
    def unit(self) -> Unit:
        """What limit and overlap count."""
        return _kind(self.chunker).unit

    @property
    def max_tokens(self) -> int:
        """Tokens that no chunk exceeds, whatever the unit."""
        return self.limit if self.unit == "tokens" else self.limit * _TOKENS_A_CHARACTER

    def identity(self) -> dict[str, str | int]:
        """Everything that decides the chunks; keys hash it."""
        return {"chunker": self.chunker, f"max_{self.unit}": self.limit, "overlap": self.overlap}


def _kind(chunker: str) -> _Kind:
    kind = _KINDS.get(chunker)
    if kind is None:
        raise ConfigurationError(
            f"no chunker is named {chunker!r}", hint=f"choose one of: {', '.join(_KINDS)}"
        )
    return kind
