"""Sections of documentation, with their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.common.errors import DocumentRejected
from rag_assets.common.tokens import count_tokens
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.retrieval.contexts import neutralised
from rag_assets.systems.agent_docs.contents import parsed_text, read_bytes
from rag_assets.systems.agent_docs.cutting import Mask
from rag_assets.systems.agent_docs.globs import FoundFile


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file from one heading to the next.

    Attributes:
        path: of the file.
        title: its heading; "" for what is above the first.
        text: with its heading.
        tokens: cl100k_base tokens of the text.
    """

    path: str
    title: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Documentation:
    """All sections of an agent's files, in order.

    Attributes:
        sections: by file.
        left_out: files that cannot be read, and why.
    """

    sections: tuple[tuple[Section, ...], ...]
    left_out: dict[str, str]

    @property
    def tokens(self) -> int:
        """Of all sections."""
        return sum(one.tokens for file in self.sections for one in file)


def read_sections(files: Sequence[FoundFile], mask: Mask) -> Documentation:
    """The sections of files in their order: credentials masked, forged marks escaped."""
    found: list[tuple[Section, ...]] = []
    left_out: dict[str, str] = {}
    for file in files:
        try:
            parsed, _ = parsed_text(file.path, read_bytes(file.file))
        except DocumentRejected as error:
            left_out[file.path] = error.advice
            continue
        cut = [(title, neutralised(text)) for title, text in _cut(mask(parsed))]
        counts = count_tokens([text for _, text in cut])
        sections = [
            Section(file.path, title, text, n) for (title, text), n in zip(cut, counts, strict=True)
        ]
        found.append(tuple(sections))
    return Documentation(tuple(found), left_out)


def _cut(parsed: ParsedText) -> Iterator[tuple[str, str]]:
    """Titles and texts of sections, without front matter."""
    blocks = [block for block in parsed.blocks if block.kind != "front_matter"]
    if not blocks:
        return
    starts = [(blocks[0].start, "")]
    for block in blocks:
        if block.kind == "heading":
            title = block.heading_path[-1] if block.heading_path else ""
            if block.start == starts[-1][0]:
                starts.pop()
            starts.append((block.start, title))
    ends = [start for start, _ in starts[1:]] + [blocks[-1].end]
    for (start, title), end in zip(starts, ends, strict=True):
        if text := parsed.text[start:end].strip():
            yield title, text
