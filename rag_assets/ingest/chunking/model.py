"""What a chunker returns."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.common.hashing import sha256_hex


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one document, small enough to be embedded and returned on its own.

    Attributes:
        ordinal: position among the document's chunks, from 0, without gaps.
        text: exactly ParsedText.text[start:end].
        start, end: character offsets into ParsedText.text, half open; includes the overlap.
        byte_start: the UTF-8 byte offset that belongs to start.
        heading_path: headings above the passage, outermost first.
        token_count: cl100k_base tokens in text.
        text_sha256: hash of the text that is embedded (see embedding_text).
        line_start, line_end: first and last line of the document touched, counted from 1, where
            the format has lines.
        page, slide, sheet: of the first block that is not overlap, where the format has them.
        row_start, row_end: first and last row touched by what is not overlap, counted from 1,
            where the format has rows.
    """

    ordinal: int
    text: str
    start: int
    end: int
    byte_start: int
    heading_path: tuple[str, ...]
    token_count: int
    text_sha256: str
    line_start: int | None = None
    line_end: int | None = None
    page: int | None = None
    slide: int | None = None
    sheet: str | None = None
    row_start: int | None = None
    row_end: int | None = None


def embedding_text(title: str | None, heading_path: tuple[str, ...], text: str) -> str:
    """The text whose vector stands for a chunk: title found in the content, headings, passage.

    File names and paths are left out on purpose: a rename must not cost an embedding.
    """
    above = [part for part in (title, *heading_path) if part]
    if len(above) > 1 and above[0] == above[1]:
        above = above[1:]
    return "\n".join([" › ".join(above), text]) if above else text


def text_hash(title: str | None, heading_path: tuple[str, ...], text: str) -> str:
    """The key under which the vector of embedding_text(...) is kept."""
    return sha256_hex(embedding_text(title, heading_path, text))
