"""Hits: excerpts, blocks and URLs of passages, and the hits that fit into a token budget."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import accumulate, pairwise, repeat, takewhile
from operator import add
from typing import Any, Final
from urllib.parse import quote

from rag_assets.common.tokens import count_text, count_tokens
from rag_assets.ingest.chunking.boundaries import find_unicode_sentence_cuts
from rag_assets.ingest.chunking.model import BlockPlace, Location, get_location_fields
from rag_assets.search.model import Hit, PassageRange, ScoreKind
from rag_assets.search.progress import Passage, SearchProgress
from rag_assets.search.scoring import compute_hit_scores, find_best_cosine
from rag_assets.search.services import SearchServices
from rag_assets.search.words import extract_content_words
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import SYMBOL
from rag_assets.storage.index.terms import choose_analysis

EXCERPT_CHARACTERS = 280
_WORD_SHARE_WEIGHT: Final = 0.5
"""Weight of a block's word share, relative to the block's cosine."""
_MIN_SHARE_LEAD: Final = 0.25
"""Lead in word share that the best block needs for words alone to decide."""


def build_excerpt(
    text: str, question: str, length: int = EXCERPT_CHARACTERS, *, language: str | None = None
) -> str:
    """Return the part of a text with most of the question's words, of about `length` characters."""
    words = text.split()
    analysis = choose_analysis(text, language)
    return _join_words(
        words, *_widen_range(words, *_find_best_part(words, question, length, analysis), length)
    )


def build_part_excerpt(
    text: str, question: str, start: int, end: int, *, language: str | None = None
) -> str:
    """Return an excerpt about text[start:end], with all of that part if it fits."""
    length = EXCERPT_CHARACTERS
    before, part, after = text[:start].split(), text[start:end].split(), text[end:].split()
    words = [*before, *part, *after]
    first, last = 0, len(part)
    if len(" ".join(part)) > length:
        analysis = choose_analysis(text[start:end], language)
        first, last = _find_best_part(part, question, length, analysis)
    return _join_words(words, *_widen_range(words, len(before) + first, len(before) + last, length))


def _join_words(words: Sequence[str], start: int, end: int) -> str:
    before, after = "[...] " if start else "", " [...]" if end < len(words) else ""
    return f"{before}{' '.join(words[start:end])}{after}"


def _find_best_part(
    words: Sequence[str], question: str, length: int, analysis: str
) -> tuple[int, int]:
    """Return the word range of the part that has most of the question's words."""
    wanted = get_question_terms(question, analysis)
    terms_of = get_term_extractor(analysis)
    matched = {
        word: terms & wanted for word in {*words} if not wanted.isdisjoint(terms := terms_of(word))
    }
    matches = [(at, matched[word]) for at, word in enumerate(words) if word in matched]
    places = [*accumulate(map(add, map(len, words), repeat(1)), initial=0)]
    return _find_best_range(matches, places, length)


def _find_best_range(
    matches: Sequence[tuple[int, frozenset[str]]], places: Sequence[int], length: int
) -> tuple[int, int]:
    """Return the word range of the part that has most different words of the question.

    Args:
        matches: the question's words in the text, by word position.
        places: the offset of every word, and of the end of the text.
    """
    first, best_score = -1, 0
    times: dict[str, int] = {}
    end = 0
    for number, (start, terms) in enumerate(matches):
        # A part never ends before the previous one, so each word is visited once.
        while end < len(matches) and (
            end == number or places[matches[end][0] + 1] - places[start] <= length
        ):
            for term in matches[end][1]:
                times[term] = times.get(term, 0) + 1
            end += 1
        if len(times) > best_score:
            first, best_score = number, len(times)
        for term in terms:
            times[term] -= 1
            if not times[term]:
                del times[term]
    matched: set[str] = set()
    for at, terms in matches[first:] if best_score else ():
        matched |= terms
        if len(matched) == best_score:
            return matches[first][0], at + 1
    return 0, min(1, len(places) - 1)


def _widen_range(words: Sequence[str], start: int, end: int, length: int) -> tuple[int, int]:
    """Extend a part of a text on both sides, each by half of the remaining length if possible."""

    def room() -> int:
        return length - len(" ".join(words[start:end]))

    def before() -> Sequence[str]:
        # There cannot be more words than characters.
        return words[max(0, start - length) : start][::-1]

    start -= _count_fitting_words(before(), room() // 2)
    end += _count_fitting_words(words[end : end + length], room())
    start -= _count_fitting_words(before(), room())
    return start, end


def _count_fitting_words(words: Sequence[str], room: int) -> int:
    """Return how many of the words, each with a space, fit into a number of characters."""
    sizes = accumulate(len(word) + 1 for word in words)
    return sum(1 for _ in takewhile(lambda size: size <= room, sizes))


@lru_cache(maxsize=64)
def get_question_terms(question: str, analysis: str) -> frozenset[str]:
    """Return the search terms of a question, analysed like the text."""
    return extract_content_words(question, analysis)


@cache
def get_term_extractor(analysis: str) -> Callable[[str], frozenset[str]]:
    """Return a function that maps one word of a text to its terms, and a stop word to no term."""
    # A cache with one argument takes half the time of a cache with two.
    return lru_cache(maxsize=16_384)(partial(extract_content_words, analysis=analysis))


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A block within a passage.

    Attributes:
        start, end: character offsets in the text of the passage, half open.
        share: weighted share of the words of a question or claim that the block contains, 0 to 1.
    """

    block_id: str
    start: int
    end: int
    share: float


def parse_blocks(fields: Mapping[str, Any]) -> tuple[BlockPlace, ...]:
    """Return the blocks in an entry's text; empty if the blocks have no ids."""
    ids, starts = fields.get("block_id") or (), fields.get("block_starts") or ()
    return tuple(BlockPlace(id_, start) for id_, start in zip(ids, starts, strict=True))


def list_block_parts(
    text: str,
    question: str,
    blocks: Sequence[BlockPlace],
    *,
    offset: int,
    language: str | None = None,
) -> tuple[BlockPart, ...]:
    """Return the blocks of a passage, each with its share of the question's words.

    A word counts more if fewer blocks contain it. The offset is the position of the text.
    """
    if not blocks:
        return ()
    ends = [max(block.start - offset, 0) for block in blocks] + [len(text)]
    analysis = choose_analysis(text, language)
    wanted, terms_of = get_question_terms(question, analysis), get_term_extractor(analysis)
    matched = [
        {term for word in {*text[start:end].split()} for term in terms_of(word) & wanted}
        for start, end in pairwise(ends)
    ]
    found_in = Counter(term for terms in matched for term in terms)
    weights = {term: math.log((len(blocks) + 1) / max(found_in[term], 1)) for term in wanted}
    total_weight = sum(weights.values()) or 1.0
    return tuple(
        BlockPart(
            block.block_id, start, end, math.fsum(weights[term] for term in terms) / total_weight
        )
        for block, (start, end), terms in zip(blocks, pairwise(ends), matched, strict=True)
    )


def is_decided_by_words(parts: Sequence[BlockPart]) -> bool:
    """Return whether words alone decide which block a question is about."""
    shares = sorted((part.share for part in parts), reverse=True)
    return len(shares) < 2 or shares[0] - shares[1] >= _MIN_SHARE_LEAD  # noqa: PLR2004 - a pair


def choose_block(parts: Sequence[BlockPart], cosines: Sequence[float] | None = None) -> BlockPart:
    """Return the block that a question is about, by words and, given cosines, by meaning."""
    near = cosines or [0.0] * len(parts)

    # On a tie the longer block wins, since a heading repeats words of the text below it.
    def rank(at: int) -> tuple[float, int, int]:
        part = parts[at]
        return round(near[at] + _WORD_SHARE_WEIGHT * part.share, 9), part.end - part.start, -at

    return parts[max(range(len(parts)), key=rank)]


def build_block_excerpt(
    text: str,
    question: str,
    parts: Sequence[BlockPart],
    cosines: Sequence[float] | None = None,
    *,
    language: str | None = None,
) -> tuple[str | None, str]:
    """Return the id of the block that a question is about, if any, and an excerpt of it."""
    if not parts:
        return None, build_excerpt(text, question, language=language)
    best = choose_block(parts, cosines)
    if len(parts) == 1:
        return best.block_id, build_excerpt(text, question, language=language)
    shown = build_part_excerpt(text, question, best.start, best.end, language=language)
    return best.block_id, shown


def build_block_url(uri: str, block_id: str | None) -> str:
    """Return the document's uri with the block id as fragment, unless the uri has a fragment."""
    return uri if block_id is None or "#" in uri else f"{uri}#{quote(block_id, safe='')}"


def build_hit(
    number: int,
    passage: Passage,
    cosine: float | None,
    version: ReadableVersion,
    question: str,
    *,
    score: float | None = None,
    score_kind: ScoreKind = "cosine",
) -> Hit:
    """Build a hit from a passage; by default the cosine is its score."""
    fields = passage.fields
    near = None if cosine is None else round(cosine, 6)
    modified: str | None = fields.get("modified_at")
    blocks = parse_blocks(fields)
    # A block that the search found is more likely to hold the answer than a block that only has the
    # same words.
    about = passage.block_fields or fields
    text, language = about["text"], about.get("language")
    parts = list_block_parts(
        text, question, parse_blocks(about), offset=about["start"], language=language
    )
    block_id, shown = build_block_excerpt(text, question, parts, language=language)
    return Hit(
        number=number,
        ordinal=fields["ordinal"],
        score=near if score is None else round(score, 6),
        score_kind=score_kind,
        cosine=near,
        text=fields["text"],
        excerpt=shown,
        uri=fields["uri"],
        title=fields.get("title"),
        heading_path=tuple(fields["heading_path"]),
        media_type=fields.get("media_type"),
        language=fields.get("language"),
        modified_at=None if modified is None else datetime.fromisoformat(modified),
        start=fields["start"],
        end=fields["end"],
        **get_location_fields(Location.from_row(fields)),
        document_id=passage.candidate.document_id,
        chunk_id=fields["chunk_id"],
        source_sha256=version.content_sha256,
        stale=version.stale,
        also=passage.also,
        source_type=fields["source_type"],
        symbol=fields.get("metadata", {}).get(SYMBOL),
        source_id=fields.get("source_id"),
        page_uuid=fields.get("page_uuid"),
        block_id=block_id,
        url=build_block_url(fields["uri"], block_id),
        blocks=blocks,
        context=fields.get("context") or "",
        ranges=tuple(_build_range(part.fields) for part in passage.parts or (passage,)),
    )


def _build_range(fields: Mapping[str, Any]) -> PassageRange:
    return PassageRange(
        fields["chunk_id"], fields["ordinal"], fields["start"], fields["end"], fields.get("page")
    )


def build_hits(progress: SearchProgress) -> list[Hit]:
    """Return the hits of a search, best first."""
    versions, question = progress.confirmed.versions, progress.search.request.query
    passages = progress.answered
    kind, scores = compute_hit_scores(progress, passages)
    return [
        build_hit(
            number,
            passage,
            find_best_cosine(progress, passage),
            versions[passage.candidate.document_id],
            question,
            score=score,
            score_kind=kind,
        )
        for number, (passage, score) in enumerate(zip(passages, scores, strict=True), start=1)
    ]


def cut_to_budget(hits: Sequence[Hit], tokens: int, question: str) -> list[Hit]:
    """Return the first hits that fit into a budget, and the next hit cut to whole sentences.

    The budget is in cl100k_base tokens. The shortened hit gets an excerpt about the question.
    """
    packed: list[Hit] = []
    counts = count_tokens([hit.text_in_context for hit in hits])
    for hit, count in zip(hits, counts, strict=True):
        if count > tokens:
            if text := take_first_sentences(hit.text, _fits_into(hit, tokens)):
                cut = truncate_hit(hit, text)
                packed.append(
                    replace(cut, excerpt=build_excerpt(text, question, language=hit.language))
                )
            break
        packed.append(hit)
        tokens -= count
    return packed


def fit_whole_chains(hits: Sequence[Hit], tokens: int, paths: Sequence[Sequence[str]]) -> list[Hit]:
    """Return the hits that fit into the budget without being cut.

    A hit is taken only together with the hits of the definitions that lead to it on a path.
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
        needed = sum(counts[member] for member in wanted)
        if needed <= tokens:
            packed |= wanted
            tokens -= needed
    return [hit for hit in hits if hit in packed]


def truncate_hit(hit: Hit, text: str) -> Hit:
    """Return a hit with `text`, the start of its text, and only the passages within this start."""
    end = hit.start + len(text)
    ranges = (
        replace(passage_range, end=min(passage_range.end, end))
        for passage_range in hit.ranges
        if passage_range.start < end
    )
    last = None
    if hit.line_start is not None and hit.line_end is not None:
        last = min(hit.line_end, hit.line_start + text.count("\n"))
    return replace(hit, text=text, end=end, line_end=last, trimmed=True, ranges=tuple(ranges))


def remove_passages(hit: Hit, ordinals: Collection[int]) -> Hit | None:
    """Cut a hit to the span of the passages that are not shown elsewhere; None if all are shown."""
    remaining = [
        passage_range for passage_range in hit.ranges if passage_range.ordinal not in ordinals
    ]
    if len(remaining) == len(hit.ranges):
        return None if hit.ordinal in ordinals else hit
    if not remaining:
        return None
    end = max(passage_range.end for passage_range in remaining)
    within = [
        passage_range
        for passage_range in hit.ranges
        if remaining[0].start <= passage_range.start and passage_range.end <= end
    ]
    return limit_to_passages(hit, within)


def limit_to_passages(hit: Hit, ranges: Sequence[PassageRange]) -> Hit:
    """Return a hit with only the text of some of its passages, which are consecutive."""
    first, end = ranges[0], max(passage_range.end for passage_range in ranges)
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


def take_first_sentences(text: str, fits: Callable[[str], bool]) -> str:
    """Return as many whole sentences from the start as fit; empty if none fits."""
    cuts = [at for at, _ in find_unicode_sentence_cuts(text, 0, len(text))]
    fitting, too_long = 0, len(cuts)
    while fitting < too_long:
        middle = (fitting + too_long + 1) // 2
        if fits(text[: cuts[middle - 1]].rstrip()):
            fitting = middle
        else:
            too_long = middle - 1
    return text[: cuts[fitting - 1]].rstrip() if fitting else ""


def _fits_into(hit: Hit, tokens: int) -> Callable[[str], bool]:
    return lambda text: count_text(replace(hit, text=text).text_in_context) <= tokens


class BudgetStep:
    """The step `budget`: builds the hits, and keeps them within the request's token budget."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Build the hits; without a token budget, all passages become hits."""
        search, walked = progress.search, progress.walk
        with progress.timings.measure("pack"):
            hits = build_hits(progress)
            if search.token_budget is not None and walked is not None:
                hits = fit_whole_chains(hits, search.token_budget, walked.paths)
            elif search.token_budget is not None:
                hits = cut_to_budget(hits, search.token_budget, search.request.query)
        return replace(progress, hits=hits)
