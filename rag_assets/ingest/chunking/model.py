"""A chunk, its flat record, the text that is embedded for it, and the facts that a text states."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.chunking.block_places import BlockPlace
from rag_assets.ingest.chunking.location import UNKNOWN_LOCATION, Location, location_fields

NO_FACTS: Mapping[str, Any] = MappingProxyType({})
EVIDENCE: Final = "\n\nStated by these lines:\n"
"""Separates the embedded part of a text from lines of other files that state it.

These lines are not embedded, because they move within their files.
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that one file makes without reference to other files.

    Attributes:
        kind: kind of the statement; each kind is described in the module that creates it.
        start, end: character offsets of the evidence, half open.
        symbol: the qualified name of the innermost definition that contains the statement; ""
            at top level.
        values: content of the statement, as JSON values by name.
        line_start, line_end: lines of the evidence, counted from 1; 0 until they are computed.
        evidence: the start of the evidence, with credentials masked, in one line.
    """

    kind: str
    start: int
    end: int
    symbol: str = ""
    values: Mapping[str, Any] = field(default_factory=lambda: NO_FACTS, hash=False)
    line_start: int = 0
    line_end: int = 0
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition that a chunk of source code contains.

    Attributes:
        role: role of the definition, as its chunker names it.
        symbol: its qualified name; "" if unnamed.
        signature: its declaration in one line; "" without a declaration.
    """

    role: str
    symbol: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of one document, small enough to be embedded and returned on its own.

    Attributes:
        ordinal: position among the document's chunks, from 0, without gaps.
        text: exactly ParsedText.text[start:end].
        start, end: character offsets into ParsedText.text, half open; they include the overlap.
        byte_start: the byte offset of `start` in UTF-8. If the text is the source itself, this
            is the offset in the file, and counts a byte order mark.
        heading_path: headings above the passage, outermost first.
        token_count: cl100k_base tokens in text and context.
        text_sha256: hash of the text that is embedded (see embedding_text).
        location: location of the chunk in the document.
        facts: further values from the chunker; JSON values by name.
        definition: the definition that the chunk contains, if a chunker of source code made it;
            else None.
        blocks: the blocks with ids in the chunk, in order.
        of_block: whether the chunk is a block, or part of a block, of a text that was also cut
            as a whole.
        context: lines from above the passage that its reader needs if it starts within a table,
            a list or code: the column names, the sentence that introduces the list, the enclosing
            lines. The context is embedded, searched and shown with the text, but is not part of it;
            "" for most passages.
    """

    ordinal: int
    text: str
    start: int
    end: int
    byte_start: int
    heading_path: tuple[str, ...]
    token_count: int
    text_sha256: str
    location: Location = UNKNOWN_LOCATION
    facts: Mapping[str, Any] = field(default_factory=lambda: NO_FACTS, hash=False)
    definition: Definition | None = None
    blocks: tuple[BlockPlace, ...] = ()
    of_block: bool = False
    context: str = ""

    def embedded(self, title: str | None) -> str:
        """Return the text to embed for the chunk, in a document with this title."""
        is_code = self.definition is not None
        return embedding_text(
            title, self.heading_path, self.text, context=self.context, is_code=is_code
        )


_NOT_FLAT = ("location", "facts", "definition", "blocks", "of_block", "context")
_FLAT = tuple(each.name for each in fields(Chunk) if each.name not in _NOT_FLAT)


def chunk_record(chunk: Chunk) -> dict[str, Any]:
    """Return a chunk as a flat row; empty facts, definition, blocks and context are omitted."""
    values = {name: getattr(chunk, name) for name in _FLAT}
    values["heading_path"] = list(chunk.heading_path)
    values |= location_fields(chunk.location)
    if chunk.facts:
        values["facts"] = dict(chunk.facts)
    if chunk.definition is not None:
        values["definition"] = asdict(chunk.definition)
    if chunk.blocks:
        values["blocks"] = [asdict(block) for block in chunk.blocks]
        values["of_block"] = chunk.of_block
    if chunk.context:
        values["context"] = chunk.context
    return values


def chunk_of(record: Mapping[str, Any]) -> Chunk:
    """Return the chunk of a row; the inverse of chunk_record()."""
    values: dict[str, Any] = {name: record[name] for name in _FLAT}
    values["heading_path"] = tuple(record["heading_path"])
    facts, definition = record.get("facts") or NO_FACTS, record.get("definition")
    return Chunk(
        **values,
        location=Location.of(record),
        facts=facts,
        definition=None if definition is None else Definition(**definition),
        blocks=tuple(BlockPlace(**block) for block in record.get("blocks") or ()),
        of_block=bool(record.get("of_block")),
        context=record.get("context") or "",
    )


def embedding_text(
    title: str | None,
    heading_path: tuple[str, ...],
    text: str,
    *,
    context: str = "",
    is_code: bool = False,
) -> str:
    """Return the text to embed for a chunk: title in the content, headings, context, passage.

    File names and paths are left out on purpose, so that a renamed file needs no new embedding. A
    change of indentation, line ends or trailing blanks in source code needs no new embedding
    either, nor does a change of the evidence lines of a derived document.
    """
    if is_code:
        text = normalised(text.partition(EVIDENCE)[0])
    above = [part for part in (title, *heading_path) if part]
    if len(above) > 1 and above[0] == above[1]:
        above = above[1:]
    return "\n".join(
        [*([" › ".join(above)] if above else []), *([context] if context else []), text]
    )


def text_hash(
    title: str | None,
    heading_path: tuple[str, ...],
    text: str,
    *,
    context: str = "",
    is_code: bool = False,
) -> str:
    """Return the key of an embedding: the hash of what embedding_text() returns."""
    embedded = embedding_text(title, heading_path, text, context=context, is_code=is_code)
    return sha256_hex(embedded)


def normalised(text: str) -> str:
    """Return code with line feeds only, no trailing blanks and no common indentation."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first, *others = (line.rstrip() for line in lines)
    # A passage starts at its first word, so its first line has no indentation.
    return "\n".join([first.lstrip(), textwrap.dedent("\n".join(others))]).strip()
