"""Blocks of pages: the block that a question or claim is about, its excerpt and its URL."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote

from rag_assets.ingest.chunking.block_places import BlockPlace
from rag_assets.search.excerpts import excerpt, excerpt_of_part, question_terms, terms_in
from rag_assets.storage.index.identifiers import analysis_of

_SHARE: Final = 0.5
"""Weight of a block's word share, relative to the block's cosine."""
_CLEAR: Final = 0.25
"""Lead in word share that the best block needs for words alone to decide."""


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A block within a passage.

    Attributes:
        start, end: in the text of the passage.
        share: weighted share of the words of a question or claim that the block contains, 0 to 1.
    """

    block_id: str
    start: int
    end: int
    share: float


def blocks_of(fields: Mapping[str, Any]) -> tuple[BlockPlace, ...]:
    """Return the blocks in an entry's text; empty if the blocks have no ids.

    Args:
        fields: the fields of the entry, as stored.
    """
    ids, starts = fields.get("block_id") or (), fields.get("block_starts") or ()
    return tuple(BlockPlace(id_, start) for id_, start in zip(ids, starts, strict=True))


def parts_of(
    text: str,
    question: str,
    blocks: Sequence[BlockPlace],
    *,
    offset: int,
    language: str | None = None,
) -> tuple[BlockPart, ...]:
    """Return the blocks of a passage, each with the share of the question's words that it contains.

    A word counts more the fewer blocks contain it: a word in all blocks distinguishes none.

    Args:
        text: text of the passage.
        question: a question or a claim.
        blocks: blocks in the text, in order.
        offset: position of the text, on the same scale as the starts of the blocks.
        language: language of the text's document, as indexed; None if uncertain.
    """
    if not blocks:
        return ()
    ends = [max(block.start - offset, 0) for block in blocks] + [len(text)]
    analysis = analysis_of(text, language)
    wanted, terms_of = question_terms(question, analysis), terms_in(analysis)
    met = [
        {term for word in {*text[start:end].split()} for term in terms_of(word) & wanted}
        for start, end in pairwise(ends)
    ]
    found_in = Counter(term for terms in met for term in terms)
    weights = {term: math.log((len(blocks) + 1) / max(found_in[term], 1)) for term in wanted}
    whole = sum(weights.values()) or 1.0
    return tuple(
        BlockPart(block.block_id, start, end, math.fsum(weights[term] for term in terms) / whole)
        for block, (start, end), terms in zip(blocks, pairwise(ends), met, strict=True)
    )


def is_clear(parts: Sequence[BlockPart]) -> bool:
    """Return whether words alone decide which block a question is about."""
    shares = sorted((part.share for part in parts), reverse=True)
    return len(shares) < 2 or shares[0] - shares[1] >= _CLEAR  # noqa: PLR2004 - a pair


def best_of(parts: Sequence[BlockPart], cosines: Sequence[float] | None = None) -> BlockPart:
    """Return the block that a question is about, by words and, given cosines, by meaning.

    Args:
        parts: the blocks; at least one.
        cosines: cosines between the question and each block.
    """
    near = cosines or [0.0] * len(parts)

    # On a tie the longer block wins, since a heading repeats words of the text below it.
    def rank(at: int) -> tuple[float, int, int]:
        part = parts[at]
        return round(near[at] + _SHARE * part.share, 9), part.end - part.start, -at

    return parts[max(range(len(parts)), key=rank)]


def excerpt_of_block(
    text: str,
    question: str,
    parts: Sequence[BlockPart],
    cosines: Sequence[float] | None = None,
    *,
    language: str | None = None,
) -> tuple[str | None, str]:
    """Return the id of the block that a question is about, and an excerpt that shows it.

    Args:
        text, question, language: as in parts_of().
        parts: the blocks; without any, the returned block id is None.
        cosines: as in best_of().
    """
    if not parts:
        return None, excerpt(text, question, language=language)
    best = best_of(parts, cosines)
    if len(parts) == 1:
        return best.block_id, excerpt(text, question, language=language)
    shown = excerpt_of_part(text, question, best.start, best.end, language=language)
    return best.block_id, shown


def url_of(uri: str, block_id: str | None) -> str:
    """Return the URL of a block: the document's uri with the block id as its fragment.

    Args:
        uri: the document's uri. A uri that already has a fragment is returned unchanged.
        block_id: None for the document as a whole.
    """
    return uri if block_id is None or "#" in uri else f"{uri}#{quote(block_id, safe='')}"
