"""Blocks of pages: which one an excerpt is from, and its address."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from rag_assets.ingest.chunking.block_places import BlockPlace
from rag_assets.retrieval.excerpts import excerpt_range, question_terms, terms_of

_WORD = re.compile(r"\S+")


def blocks_of(fields: Mapping[str, Any]) -> tuple[BlockPlace, ...]:
    """The blocks in an entry's text; none where blocks have no ids.

    Args:
        fields: as stored.
    """
    ids, starts = fields.get("block_id") or (), fields.get("block_starts") or ()
    return tuple(BlockPlace(id_, start) for id_, start in zip(ids, starts, strict=True))


def block_of_excerpt(
    text: str, question: str, blocks: Sequence[BlockPlace], *, offset: int
) -> str | None:
    """The block that an excerpt is from: the one with most words of the question.

    Args:
        text, question: as of excerpt().
        blocks: in the text, in order; of none the answer is None.
        offset: of the text, which the starts of blocks count from, too.
    """
    if len(blocks) <= 1:
        return blocks[0].block_id if blocks else None
    found = [*_WORD.finditer(text)]
    first, end = excerpt_range([word.group() for word in found], question)
    wanted = question_terms(question)
    starts = [block.start - offset for block in blocks]
    terms: dict[int, set[str]] = {}
    sizes: dict[int, int] = {}
    for word in found[first:end]:
        at = bisect_right(starts, word.start()) - 1
        if at < 0:
            continue  # The title, or the end of a block that is not named.
        terms.setdefault(at, set()).update(terms_of(word.group()) & wanted)
        sizes[at] = sizes.get(at, 0) + len(word.group())
    # Of equally many words the longer one: a heading names what the text below it says.
    best = max(sizes, key=lambda at: (len(terms[at]), sizes[at], -at), default=0)
    return blocks[best].block_id


def url_of(uri: str, block_id: str | None) -> str:
    """The address of a block: a uri with the block as its fragment.

    Args:
        uri: of the document. One that has a fragment already, as pages of some applications do,
            stays as it is.
        block_id: None: the document as a whole.
    """
    return uri if block_id is None or "#" in uri else f"{uri}#{quote(block_id, safe='')}"
