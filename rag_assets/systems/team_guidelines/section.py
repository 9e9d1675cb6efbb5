"""Rendering of guidelines as a section of a system prompt, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rag_assets.api.guideline_responses import GuidelineChunk, RuleKind
from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.model import describe_location
from rag_assets.ingest.sources.model import path_of
from rag_assets.search.contexts import as_source, neutralised
from rag_assets.search.hits import beginning_of, first_sentences
from rag_assets.search.model import Hit

HEADING = "## Team Guidelines"

_MAX_HEADING_CHARACTERS = 400
"""Maximum length of the headings above a passage."""


@dataclass(frozen=True, slots=True)
class Section:
    """A rendered section with its passages.

    Attributes:
        text: text of the section; empty if no passage fits.
        tokens: number of tokens in the text.
        chunks: the passages, best first.
        omitted: number of passages that did not fit.
    """

    text: str
    tokens: int
    chunks: tuple[GuidelineChunk, ...]
    omitted: int


def render_text(text: str) -> str:
    """Return a section with a plain text, unchanged."""
    return f"{HEADING}\n\n{text}"


def render_passages(
    hits: Sequence[Hit], tokens: int, rules: Mapping[str, RuleKind] = MappingProxyType({})
) -> Section:
    """Return a section with the first passages that fit, and the fitting sentences of the next.

    Args:
        hits: the passages, best first.
        tokens: maximum cl100k_base tokens of the whole section, including headings and separators.
        rules: kinds of the rules that added passages, by document id.
    """
    packed: list[Hit] = []
    for hit in hits:
        if _fits([*packed, hit], tokens):
            packed.append(hit)
            continue
        packed += _trim(packed, hit, tokens)
        if packed:
            break
    if not packed:
        return Section("", 0, (), len(hits))
    rendered = _render(packed)
    chunks = tuple(
        _build_chunk(number, hit, rules.get(hit.document_id))
        for number, hit in enumerate(packed, start=1)
    )
    return Section(rendered, count_text(rendered), chunks, len(hits) - len(packed))


def file_name_of(hit: Hit) -> str:
    """Return the name of the file of a passage."""
    return path_of(hit.uri).rpartition("/")[2]


def _fits(hits: Sequence[Hit], tokens: int) -> bool:
    return count_text(_render(hits)) <= tokens


def _trim(before: Sequence[Hit], hit: Hit, tokens: int) -> list[Hit]:
    """Return the hit cut to the first sentences that fit after other hits; [] if none fits."""
    text = first_sentences(hit.text, lambda text: _fits([*before, beginning_of(hit, text)], tokens))
    return [beginning_of(hit, text)] if text else []


def _render(hits: Sequence[Hit]) -> str:
    passages = (_render_passage(number, hit) for number, hit in enumerate(hits, start=1))
    return "\n\n".join((HEADING, *passages))


def _render_passage(number: int, hit: Hit) -> str:
    """Return a passage under a line that no document can imitate (see neutralised)."""
    page = describe_location(hit) if hit.page is not None else ""
    headings = " › ".join(hit.heading_path)[:_MAX_HEADING_CHARACTERS]
    source = as_source("; ".join(filter(None, (file_name_of(hit), page, headings))))
    return f"--- Passage [{number}] (source: {source}) ---\n{neutralised(hit.text_in_context)}"


def _build_chunk(number: int, hit: Hit, rule: RuleKind | None) -> GuidelineChunk:
    return GuidelineChunk(
        number=number,
        document_id=hit.document_id,
        file_name=file_name_of(hit),
        chunk_index=hit.ordinal,
        chunk_indexes=tuple(passage.ordinal for passage in hit.ranges) or (hit.ordinal,),
        score=hit.cosine,
        rule=rule,
        page=hit.page,
        heading_path=hit.heading_path,
        tokens=count_text(neutralised(hit.text_in_context)),
        trimmed=hit.trimmed,
    )
