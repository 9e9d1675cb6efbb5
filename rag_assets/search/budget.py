"""Token budgets: the hits that fit into a budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from rag_assets.common.tokens import count_text, count_tokens
from rag_assets.ingest.chunking.sentence import unicode_sentence_cuts
from rag_assets.search.excerpts import excerpt
from rag_assets.search.model import Hit, PassageRange


def within_budget(hits: Sequence[Hit], tokens: int, question: str) -> list[Hit]:
    """Return the leading hits that fit into a budget, and the sentences that fit of the next hit.

    Args:
        hits: best first.
        tokens: maximum total of cl100k_base tokens of all texts.
        question: question that the excerpt of the shortened hit is about.
    """
    packed: list[Hit] = []
    counts = count_tokens([hit.text_in_context for hit in hits])
    for hit, count in zip(hits, counts, strict=True):
        if count > tokens:
            if text := first_sentences(hit.text, _within(hit, tokens)):
                cut = beginning_of(hit, text)
                packed.append(replace(cut, excerpt=excerpt(text, question, language=hit.language)))
            break
        packed.append(hit)
        tokens -= count
    return packed


def fit_whole_chains(hits: Sequence[Hit], tokens: int, paths: Sequence[Sequence[str]]) -> list[Hit]:
    """Return the uncut hits that fit into the budget, each with the definitions that lead to it.

    Args:
        hits: best first.
        tokens: as in within_budget.
        paths: paths of definitions; on a path, each definition leads to the next.
    """
    counts = dict(zip(hits, count_tokens([hit.text_in_context for hit in hits]), strict=True))
    by_symbol: dict[str, Hit] = {}
    for hit in hits:
        if hit.symbol:
            by_symbol.setdefault(hit.symbol, hit)
    leading = {path[-1]: path for path in reversed(paths)}
    packed: set[Hit] = set()
    for hit in hits:
        chain = [by_symbol[name] for name in leading.get(hit.symbol or "", ()) if name in by_symbol]
        wanted = {hit, *chain} - packed
        needed = sum(counts[one] for one in wanted)
        if needed <= tokens:
            packed |= wanted
            tokens -= needed
    return [hit for hit in hits if hit in packed]


def beginning_of(hit: Hit, text: str) -> Hit:
    """Return a hit that keeps only the start of its text, and the passages within that part."""
    end = hit.start + len(text)
    ranges = (replace(one, end=min(one.end, end)) for one in hit.ranges if one.start < end)
    last = None
    if hit.line_start is not None and hit.line_end is not None:
        last = min(hit.line_end, hit.line_start + text.count("\n"))
    return replace(hit, text=text, end=end, line_end=last, trimmed=True, ranges=tuple(ranges))


def without_passages(hit: Hit, ordinals: Collection[int]) -> Hit | None:
    """Return a hit cut to the span from its first to its last passage that is not shown elsewhere.

    Args:
        hit: a hit of one or several passages.
        ordinals: ordinals of the passages of its document that are shown elsewhere.
    """
    left = [one for one in hit.ranges if one.ordinal not in ordinals]
    if len(left) == len(hit.ranges):
        return None if hit.ordinal in ordinals else hit
    if not left:
        return None
    end = max(one.end for one in left)
    within = [one for one in hit.ranges if left[0].start <= one.start and one.end <= end]
    return limit_to_passages(hit, within)


def limit_to_passages(hit: Hit, ranges: Sequence[PassageRange]) -> Hit:
    """Return a hit with only the text of some of its passages.

    Args:
        hit: a hit of several passages.
        ranges: consecutive passage ranges of this hit.
    """
    first, end = ranges[0], max(one.end for one in ranges)
    return replace(
        hit,
        text=hit.text[first.start - hit.start : end - hit.start],
        start=first.start,
        end=end,
        ordinal=first.ordinal,
        chunk_id=first.chunk_id,
        page=first.page,
        # The context belongs to the first passage; the context of later passages is not loaded.
        context=hit.context if first.start == hit.start else "",
        ranges=tuple(ranges),
    )


def first_sentences(text: str, fits: Callable[[str], bool]) -> str:
    """Return as many whole sentences from the start as fit; empty if even the first does not fit.

    Args:
        text: a text that is too long as a whole.
        fits: returns whether a prefix fits. If a prefix fits, every shorter prefix must fit
            too.
    """
    cuts = [at for at, _ in unicode_sentence_cuts(text, 0, len(text))]
    most, too_long = 0, len(cuts)
    while most < too_long:
        middle = (most + too_long + 1) // 2
        if fits(text[: cuts[middle - 1]].rstrip()):
            most = middle
        else:
            too_long = middle - 1
    return text[: cuts[most - 1]].rstrip() if most else ""


def _within(hit: Hit, tokens: int) -> Callable[[str], bool]:
    return lambda text: count_text(replace(hit, text=text).text_in_context) <= tokens
