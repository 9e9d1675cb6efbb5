"""Chunker kinds: a chunker's name, its limits and its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.chunking.model import Fact, Passage
from rag_assets.ingest.parsing.model import ParsedText

UNREAD = "unread"
"""Kind of a fact: part of the text could not be read; `why` names the part and the reason."""

_STOPPED = "reading it needs more time or memory than one document may use"

MAX_TOKENS = 8191  # the longest input of embedding models, less one
_MAX_TOKENS_PER_CHARACTER = (
    4  # an upper limit: a token has at least one byte, a character at most four
)

MAX_LEVELS = 9
"""Maximum number of heading levels that a document may have."""

Unit: TypeAlias = Literal["tokens", "characters"]


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """A document to be cut, and the settings of the cut; the key of its chunk set hashes them.

    Attributes:
        overlap: maximum size of the text that a passage repeats of the previous passage, in the
            same unit.
        minimum: the size below which a passage is joined with a neighbour, if the chunker
            supports this.
    """

    parsed: ParsedText
    limit: int
    overlap: int
    minimum: int = 0
    kind: str = ""
    language: str | None = None
    path_hint: str = ""
    levels: int = 0
    frameworks: str = ""


@dataclass(frozen=True, slots=True)
class CutText:
    """The result of cutting a document."""

    passages: list[Passage]
    facts: tuple[Fact, ...] = ()
    block_passages: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkerKind:
    """A chunker and its defaults.

    Attributes:
        split: returns the passages of a document, in order; their starts, new starts and ends
            never decrease. The same request always gives the same passages.
        read: cuts instead of `split`, and also returns the facts stated in the text. It runs a
            parser that a hostile text may crash, so it is called in worker processes only; `split`
            is the fallback for texts that crashed it.
        prepare: imports what `read` needs, before workers are forked.
        reading_version: increased whenever `read` would return other facts or passages for the
            same request.
        programs: media types of source code. There, a match of a pattern for credentials is
            often part of a name or a test, so only the match is masked, and the rest of its passage
            is kept.
        most: the largest limit that may be configured, if it differs from the input limit of
            remote models.
        blocks: returns, in order, the blocks of a text (or parts of a block) that become
            separate passages in addition.
        find_path_hint: returns a hint derived from a document's path within its source and its
            media type, if such a path changes how the text is cut; "" for no hint. By default,
            paths are ignored.
        version: increased whenever the same request would give other passages. CHUNKER_VERSION,
            which starts a new generation for all tenants, is for changes of most documents.
    """

    name: str
    purpose: str
    split: Callable[[ChunkRequest], list[Passage]]
    unit: Unit
    limit: int
    overlap: int = 0
    overlaps: bool = True
    minimum: int = 0
    read: Callable[[ChunkRequest], CutText] | None = None
    prepare: Callable[[], None] | None = None
    reading_version: int = 0
    programs: frozenset[str] = frozenset()
    blocks: Callable[[ChunkRequest], list[Passage]] | None = None
    find_path_hint: Callable[[str, str], str] | None = None
    levels: int | None = None
    version: int = 1
    most: int | None = None
    chunk_types: tuple[str, ...] = ()

    def cut(self, request: ChunkRequest, *, is_confined: bool = True) -> CutText:
        """Cut a document with `read` if the process `is_confined`, and with `split` otherwise."""
        if self.read is not None and is_confined:
            return self.read(request)
        facts = () if self.read is None else (Fact(UNREAD, 0, 0, values={"why": _STOPPED}),)
        block_passages = () if self.blocks is None else tuple(self.blocks(request))
        return CutText(self.split(request), facts, block_passages)

    @property
    def smallest(self) -> int:
        """Return the smallest limit that may be configured, in the chunker's unit."""
        return 16 if self.unit == "tokens" else 64

    @property
    def largest(self) -> int:
        """Return the largest limit that may be configured, by default MAX_TOKENS tokens."""
        if self.most is not None:
            return self.most
        return MAX_TOKENS if self.unit == "tokens" else MAX_TOKENS // _MAX_TOKENS_PER_CHARACTER

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the names of the settings that configurations may give for this chunker."""
        overlap = ("overlap",) if self.overlaps else ()
        levels = ("levels",) if self.levels is not None else ()
        return (f"max_{self.unit}", *overlap, *levels)


@dataclass(frozen=True, slots=True)
class ChunkParameters:
    """A chunker and its limits.

    Raises:
        ConfigurationError: a limit is out of range, or the overlap is over half of the limit.
    """

    kind: ChunkerKind
    limit: int
    overlap: int
    path_hint: str = ""
    levels: int | None = None
    frameworks: str = ""

    def __post_init__(self) -> None:
        kind = self.kind
        if not kind.smallest <= self.limit <= kind.largest:
            raise ConfigurationError(
                f"chunker {kind.name}: max_{kind.unit} is {self.limit}, which is out of range",
                hint=f"choose a value from {kind.smallest} to {kind.largest} {kind.unit}",
            )
        max_overlap = self.limit // 2 if kind.overlaps else 0
        if not 0 <= self.overlap <= max_overlap:
            raise ConfigurationError(
                f"chunker {kind.name}: overlap is {self.overlap} with max_{kind.unit} {self.limit},"
                " which is out of range",
                hint=f"set the overlap to between 0 and {max_overlap} {kind.unit}",
            )
        if self.levels is not None and not 1 <= self.levels <= MAX_LEVELS:
            raise ConfigurationError(
                f"chunker {kind.name}: levels is {self.levels}, which is out of range",
                hint=f"set levels to between 1 and {MAX_LEVELS}, or remove this setting",
            )

    @property
    def max_tokens(self) -> int:
        """Return the maximum number of tokens of a chunk, whatever the unit of the limit."""
        return self.limit if self.kind.unit == "tokens" else self.limit * _MAX_TOKENS_PER_CHARACTER

    def adapt_to(self, path: str, media_type: str) -> ChunkParameters:
        """Return these parameters with the path hint of one document."""
        find_hint = self.kind.find_path_hint
        path_hint = "" if find_hint is None else find_hint(path, media_type)
        return replace(self, path_hint=path_hint) if path_hint != self.path_hint else self

    def request(self, parsed: ParsedText, language: str | None = None) -> ChunkRequest:
        """Return the request to cut a document with these parameters."""
        sizes = self.limit, self.overlap, self.kind.minimum
        levels = self.kind.levels if self.levels is None else self.levels
        return ChunkRequest(
            parsed,
            *sizes,
            parsed.media_type,
            language,
            self.path_hint,
            levels=levels or 0,
            frameworks=self.frameworks,
        )

    def identity(self) -> dict[str, str | int]:
        """Return all values that determine the chunks; keys hash these values."""
        identity: dict[str, str | int] = {
            "chunker": self.kind.name,
            f"max_{self.kind.unit}": self.limit,
            "overlap": self.overlap,
        }
        if self.kind.minimum:
            identity["minimum"] = self.kind.minimum
        if self.kind.version != 1:
            identity["version"] = self.kind.version
        if self.kind.read is not None:
            identity["reading"] = self.kind.reading_version
        if self.levels is not None:
            identity["levels"] = self.levels
        if self.path_hint:
            identity["place"] = self.path_hint
        if self.frameworks:
            identity["frameworks"] = self.frameworks
        return identity
