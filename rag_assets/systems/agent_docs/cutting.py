"""Cuts a file into passages, in which credentials are masked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from rag_assets.common.hashing import key_of
from rag_assets.ingest.chunking.chunk_set import CHUNKER_VERSION, is_dropped
from rag_assets.ingest.chunking.kinds import ChunkRequest
from rag_assets.ingest.chunking.masked_spans import touching
from rag_assets.ingest.chunking.own_places import with_own_places
from rag_assets.ingest.chunking.passages import locate
from rag_assets.ingest.chunking.sentence import SENTENCE
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.registry import parsers_version
from rag_assets.privacy.secrets.scanner import rules_version
from rag_assets.systems.agent_docs.contents import parsed_text
from rag_assets.systems.agent_docs.stores import DocChunk

_VERSION: Final = 2
"""Increased whenever the same file would give other passages."""


class Mask(Protocol):
    """Masks the credentials of a document; see document_masker.masked."""

    def __call__(self, parsed: ParsedText) -> ParsedText:
        """The document with its credentials masked."""
        ...


@dataclass(frozen=True, slots=True)
class Chunking:
    """Limits of passages, in characters.

    Attributes:
        size: that none exceeds.
        overlap: the most that one repeats of the one before it; at most half of the size.
    """

    size: int = 2000
    overlap: int = 200

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= self.overlap <= self.size // 2:
            raise ValueError("a passage has a character or more, and repeats at most half of them")

    @property
    def recipe(self) -> str:
        """The key of all that determines the passages of a file, beside its bytes."""
        versions = (_VERSION, CHUNKER_VERSION, parsers_version(), rules_version())
        return key_of("agent_passages", self.size, self.overlap, *versions)


@dataclass(frozen=True, slots=True)
class CutPassage:
    """A passage, and what is embedded for it.

    Attributes:
        chunk: the passage.
        embedded: the text whose vector stands for it.
        text_sha256: of that text.
    """

    chunk: DocChunk
    embedded: str
    text_sha256: str


@dataclass(frozen=True, slots=True)
class CutFile:
    """The passages of a file.

    Attributes:
        dropped: how many were left out because nothing but masked characters was left of them.
        rules: that found the credentials of the file, sorted.
    """

    passages: tuple[CutPassage, ...]
    dropped: int = 0
    rules: tuple[str, ...] = ()


def cut_file(agent_id: str, path: str, data: bytes, chunking: Chunking, mask: Mask) -> CutFile:
    """Cut a file.

    Args:
        agent_id: of the agent.
        path: of the file, as source_path.
        data: its bytes.
        chunking: the limits.
        mask: finds credentials.

    Raises:
        DocumentRejected: it cannot be read as text.
    """
    parsed, before = parsed_text(path, data)
    masked = mask(parsed)
    request = ChunkRequest(masked, chunking.size, chunking.overlap, kind=masked.media_type)
    cut = list(locate(masked, with_own_places(SENTENCE.split(request))))
    kept = []
    for chunk, masks in zip(cut, touching(masked.masked, cut), strict=True):
        if not masks or not is_dropped(chunk, masks):
            at = DocChunk.at(agent_id, path, chunk.byte_start + before, chunk.text)
            kept.append(CutPassage(at, chunk.embedded(masked.title), chunk.text_sha256))
    rules = tuple(sorted({mask.rule for mask in masked.masked}))
    return CutFile(tuple(kept), len(cut) - len(kept), rules)
