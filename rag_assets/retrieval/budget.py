"""Token budgets: the hits that fit into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_assets.common.tokens import count_text, count_tokens
from rag_assets.ingest.chunking.sentence import unicode_sentence_cuts
from rag_assets.retrieval.excerpts import excerpt
from rag_assets.retrieval.model import Hit


def within_budget(hits: Sequence[Hit], tokens: int, question: str) -> list[Hit]:
    """The first hits that fit together, whole; of the one after them, the sentences that fit.

    Args:
        hits: best first.
        tokens: cl100k_base tokens of all texts together at most.
        question: what the excerpt of one that is cut is to be about.
    """
    packed: list[Hit] = []
    for hit, count in zip(hits, count_tokens([hit.text for hit in hits]), strict=True):
        if count > tokens:
            if text := _first_sentences(hit.text, tokens):
                packed.append(_cut(hit, text, question))
            break
        packed.append(hit)
        tokens -= count
    return packed


def _cut(hit: Hit, text: str, question: str) -> Hit:
    """The hit with the beginning of its text alone."""
    last = None
    if hit.line_start is not None and hit.line_end is not None:
        last = min(hit.line_end, hit.line_start + text.count("\n"))
    return replace(
        hit,
        text=text,
        excerpt=excerpt(text, question),
        end=hit.start + len(text),
        line_end=last,
        trimmed=True,
    )


def _first_sentences(text: str, tokens: int) -> str:
    """As many whole sentences from the beginning as fit; none if the first does not."""
    cuts = [at for at, _ in unicode_sentence_cuts(text, 0, len(text))]
    fits, too_long = 0, len(cuts)
    while fits < too_long:
        middle = (fits + too_long + 1) // 2
        if count_text(text[: cuts[middle - 1]].rstrip()) <= tokens:
            fits = middle
        else:
            too_long = middle - 1
    return text[: cuts[fits - 1]].rstrip() if fits else ""
