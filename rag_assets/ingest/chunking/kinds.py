"""Chunker kinds: a chunker's name, its limits and its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.chunking.model import Fact
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.parsing.model import ParsedText

UNREAD = "unread"
"""Kind of a fact: part of the text could not be read; `why` names the part and the reason."""

_STOPPED = "reading it needs more time or memory than one document may use"

MAX_TOKENS = 8191  # the longest input of embedding models, less one
_TOKENS_A_CHARACTER = 4  # at most: a token has a byte or more, a character four or fewer

MOST_LEVELS = 9
"""Largest number of heading levels that a document may have."""

Unit: TypeAlias = Literal["tokens", "characters"]


@dataclass(frozen=True, slots=True)
class ChunkRequest:
    """A document to be cut. The keys of chunk sets hash all fields.

    Attributes:
        parsed: its text and blocks.
        limit: the size that no passage exceeds, in the unit of the chunker.
        overlap: the most that a passage repeats of the previous passage, in the same unit.
        minimum: the size below which a passage is joined with a neighbour, if the chunker can.
        kind: the media type of the content.
        language: its language; None if uncertain.
        place: the hint from the document's path, if the chunker uses one; see ChunkerKind.place.
        levels: heading levels at which a new passage starts; 0 for all.
        frameworks: the tenant's own frameworks, for chunkers that read source code.
    """

    parsed: ParsedText
    limit: int
    overlap: int
    minimum: int = 0
    kind: str = ""
    language: str | None = None
    place: str = ""
    levels: int = 0
    frameworks: str = ""


@dataclass(frozen=True, slots=True)
class CutText:
    """A document after it was cut.

    Attributes:
        passages: see ChunkerKind.split.
        facts: facts stated in the text, from chunkers that read it.
        of_blocks: see ChunkerKind.blocks.
    """

    passages: list[Passage]
    facts: tuple[Fact, ...] = ()
    of_blocks: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True)
class ChunkerKind:
    """A chunker and its defaults.

    Attributes:
        name: its name in configurations.
        purpose: how it cuts, for the configuration reference.
        split: returns the passages of a document, in order: their starts, new starts and ends never
            decrease. The same request always gives the same passages.
        unit: the unit of its limits: cl100k_base tokens, or Unicode code points.
        limit, overlap: its defaults.
        overlaps: whether its passages may overlap.
        minimum: see ChunkRequest.
        read: cuts in place of `split` and also returns the facts stated in the text. It runs a
            parser that a hostile text may stop, and so runs in worker processes only; `split` is
            the fallback for texts that stopped it.
        prepare: imports what `read` needs, before workers are forked.
        reading_version: increased whenever `read` would return other facts or passages for the same
            request.
        programs: media types of programs. There, a match of a pattern for credentials is often part
            of a name or a test, so it is masked, and the rest of its passage is kept.
        chunk_types: source types that its chunks may have instead of their document's.
        most: the largest allowed limit, if it differs from the input limit of remote models.
        blocks: returns, in order, the blocks of a text (or parts of a block) that are also separate
            passages.
        place: returns a hint from a path within its source, given the media type, if the same text
            is cut differently there; "" for no hint. By default, paths are ignored.
        levels: heading levels at which a new passage starts, by default; 0 for all, None if the
            chunker ignores headings.
        version: increased whenever the same request would give other passages; built-in chunkers
            share CHUNKER_VERSION and stay at 1.
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
    place: Callable[[str, str], str] | None = None
    levels: int | None = None
    version: int = 1
    most: int | None = None
    chunk_types: tuple[str, ...] = ()

    def cut(self, request: ChunkRequest, *, confined: bool = True) -> CutText:
        """Cut a document.

        Args:
            request: the document.
            confined: whether this process has limits of time and memory for it.
        """
        if self.read is not None and confined:
            return self.read(request)
        facts = () if self.read is None else (Fact(UNREAD, 0, 0, values={"why": _STOPPED}),)
        of_blocks = () if self.blocks is None else tuple(self.blocks(request))
        return CutText(self.split(request), facts, of_blocks)

    @property
    def smallest(self) -> int:
        """Return the smallest allowed limit."""
        return 16 if self.unit == "tokens" else 64

    @property
    def largest(self) -> int:
        """Return the largest allowed limit: chunks stay within MAX_TOKENS unless `most` is set."""
        if self.most is not None:
            return self.most
        return MAX_TOKENS if self.unit == "tokens" else MAX_TOKENS // _TOKENS_A_CHARACTER

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the names of its settings."""
        overlap = ("overlap",) if self.overlaps else ()
        levels = ("levels",) if self.levels is not None else ()
        return (f"max_{self.unit}", *overlap, *levels)


@dataclass(frozen=True, slots=True)
class ChunkParameters:
    """A chunker and its limits.

    Attributes:
        kind: the chunker.
        limit: the size that no chunk exceeds, in the chunker's unit: cl100k_base tokens, or
            characters (Unicode code points).
        overlap: in the same unit, the most that a chunk repeats of the previous chunk.
        place: see ChunkRequest.
        levels: heading levels at which a new passage starts; None for the chunker's default.
        frameworks: see ChunkRequest.

    Raises:
        ConfigurationError: a limit is out of range, or the overlap is over half of it.
    """

    kind: ChunkerKind
    limit: int
    overlap: int
    place: str = ""
    levels: int | None = None
    frameworks: str = ""

    def __post_init__(self) -> None:
        kind = self.kind
        if not kind.smallest <= self.limit <= kind.largest:
            raise ConfigurationError(
                f"chunker {kind.name}: max_{kind.unit} is {self.limit}",
                hint=f"choose {kind.smallest} to {kind.largest} {kind.unit}",
            )
        most = self.limit // 2 if kind.overlaps else 0
        if not 0 <= self.overlap <= most:
            raise ConfigurationError(
                f"chunker {kind.name}: overlap is {self.overlap} with max_{kind.unit} {self.limit}",
                hint=f"choose 0 to {most} {kind.unit}",
            )
        if self.levels is not None and not 1 <= self.levels <= MOST_LEVELS:
            raise ConfigurationError(
                f"chunker {kind.name}: levels is {self.levels}",
                hint=f"choose 1 to {MOST_LEVELS} levels of headings, or leave it out",
            )

    @property
    def max_tokens(self) -> int:
        """Return the number of tokens that no chunk exceeds, whatever the unit."""
        return self.limit if self.kind.unit == "tokens" else self.limit * _TOKENS_A_CHARACTER

    def at(self, path: str, media_type: str) -> ChunkParameters:
        """Return these parameters for a document with this path and type.

        Args:
            path: POSIX path within its source.
            media_type: the type of its content.
        """
        place = self.kind.place(path, media_type) if self.kind.place is not None else ""
        return replace(self, place=place) if place != self.place else self

    def request(self, parsed: ParsedText, language: str | None = None) -> ChunkRequest:
        """Return the request that has the chunker cut a document.

        Args:
            parsed: the document.
            language: its language, if known.
        """
        sizes = self.limit, self.overlap, self.kind.minimum
        levels = self.kind.levels if self.levels is None else self.levels
        return ChunkRequest(
            parsed,
            *sizes,
            parsed.media_type,
            language,
            self.place,
            levels=levels or 0,
            frameworks=self.frameworks,
        )

    def identity(self) -> dict[str, str | int]:
        """Return every value that determines the chunks; keys hash it."""
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
        if self.place:
            identity["place"] = self.place
        if self.frameworks:
            identity["frameworks"] = self.frameworks
        return identity
