"""A chunk, its flat record, and the text that is embedded for it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from rag_assets.code.model import EVIDENCE
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.chunking.block_places import BlockPlace
from rag_assets.ingest.chunking.location import UNKNOWN_LOCATION, Location, location_fields

NO_FACTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Definition:
    """What a chunk of source code is by its own text.

    Attributes:
        role: see rag_assets.code.model.Role.
        symbol: its qualified name; "" for what has none.
        signature: its declaration in one line; "" for what has none.
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
        start, end: character offsets into ParsedText.text, half open; includes the overlap.
        byte_start: the UTF-8 byte offset that belongs to start; where the text is the source, of
            its file, a byte order mark counted.
        heading_path: headings above the passage, outermost first.
        token_count: cl100k_base tokens in text and context.
        text_sha256: hash of the text that is embedded (see embedding_text).
        location: where in the document it is.
        facts: further values from its chunker; JSON values by name.
        definition: what it defines, where the chunker of source code made it; else None.
        blocks: the blocks that it holds and that have ids, in order.
        of_block: whether it is one block, or a part of one, of a text that was also cut as a whole.
        context: lines from above the passage that a reader of it lacks, where it begins within a
            table, a list or code: the names of the columns, the sentence that leads to the list,
            the lines that enclose it. It is embedded, searched and shown with the text, and no part
            of it; "" for most passages.
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
        """The text whose vector stands for it, in a document with this title."""
        is_code = self.definition is not None
        return embedding_text(
            title, self.heading_path, self.text, context=self.context, is_code=is_code
        )


_NOT_FLAT = ("location", "facts", "definition", "blocks", "of_block", "context")
_FLAT = tuple(each.name for each in fields(Chunk) if each.name not in _NOT_FLAT)


def chunk_record(chunk: Chunk) -> dict[str, Any]:
    """A chunk as a flat row; facts, a definition, blocks and a context only where there are any."""
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
    """The inverse of chunk_record()."""
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
    """The text whose vector stands for a chunk: title in the content, headings, context, passage.

    File names and paths are left out on purpose: a rename must not cost an embedding. Nor must
    a change of indentation, of line ends or of blanks at the end of lines in source code, or of
    the lines that a derived document follows from.
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
    """The key of the vector of embedding_text(...)."""
    embedded = embedding_text(title, heading_path, text, context=context, is_code=is_code)
    return sha256_hex(embedded)


def normalised(text: str) -> str:
    """Source code with line feeds alone, no blanks at the end of lines, and no common indent."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first, *others = (line.rstrip() for line in lines)
    # A passage begins at its first word: the indent of its first line is not in it.
    return "\n".join([first.lstrip(), textwrap.dedent("\n".join(others))]).strip()
