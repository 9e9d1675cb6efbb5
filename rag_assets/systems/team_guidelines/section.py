"""The section of a system prompt that holds a team's guidelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from rag_assets.api.guideline_responses import GuidelineChunk, RuleKind
from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.location import describe
from rag_assets.ingest.sources.model import path_of
from rag_assets.retrieval.budget import first_sentences
from rag_assets.retrieval.contexts import as_source, neutralised
from rag_assets.retrieval.model import Hit

HEADING = "## Team Guidelines"

_MOST_HEADINGS = 400
"""Characters of the headings above a passage."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section and what is in it.

    Attributes:
        text: empty where nothing fits.
        tokens: of the text.
        chunks: the passages, best first.
        omitted: how many passages did not fit.
    """

    text: str
    tokens: int
    chunks: tuple[GuidelineChunk, ...]
    omitted: int


def section_of_text(text: str) -> str:
    """A section with a plain text, unchanged."""
    return f"{HEADING}\n\n{text}"


def section_of_passages(
    hits: Sequence[Hit], tokens: int, rules: Mapping[str, RuleKind] = MappingProxyType({})
) -> Section:
    """A section with the first passages that fit, whole; of the next, the sentences that fit.

    Args:
        hits: best first.
        tokens: cl100k_base tokens of the whole section at most, headings and lines between
            passages included.
        rules: why the passages of some documents are there without being found, by document.
    """
    packed: list[Hit] = []
    for hit in hits:
        if _fits([*packed, hit], tokens):
            packed.append(hit)
            continue
        packed += _cut(packed, hit, tokens)
        if packed:
            break
    if not packed:
        return Section("", 0, (), len(hits))
    rendered = _rendered(packed)
    chunks = tuple(
        _chunk(number, hit, rules.get(hit.document_id))
        for number, hit in enumerate(packed, start=1)
    )
    return Section(rendered, count_text(rendered), chunks, len(hits) - len(packed))


def file_name_of(hit: Hit) -> str:
    """The name of the file that a passage is from."""
    return path_of(hit.uri).rpartition("/")[2]


def _fits(hits: Sequence[Hit], tokens: int) -> bool:
    return count_text(_rendered(hits)) <= tokens


def _cut(before: Sequence[Hit], hit: Hit, tokens: int) -> list[Hit]:
    """The hit with its first sentences, as many as fit behind others; nothing if none does."""

    def beginning(text: str) -> Hit:
        return replace(hit, text=text, trimmed=True)

    text = first_sentences(hit.text, lambda text: _fits([*before, beginning(text)], tokens))
    return [beginning(text)] if text else []


def _rendered(hits: Sequence[Hit]) -> str:
    passages = (_passage(number, hit) for number, hit in enumerate(hits, start=1))
    return "\n\n".join((HEADING, *passages))


def _passage(number: int, hit: Hit) -> str:
    """A passage below a line that no text of a document can imitate (see neutralised)."""
    page = describe(hit) if hit.page is not None else ""
    headings = " › ".join(hit.heading_path)[:_MOST_HEADINGS]
    source = as_source("; ".join(filter(None, (file_name_of(hit), page, headings))))
    return f"--- Passage [{number}] (source: {source}) ---\n{neutralised(hit.text_in_context)}"


def _chunk(number: int, hit: Hit, rule: RuleKind | None) -> GuidelineChunk:
    return GuidelineChunk(
        number=number,
        document_id=hit.document_id,
        file_name=file_name_of(hit),
        chunk_index=hit.ordinal,
        score=hit.score,
        rule=rule,
        page=hit.page,
        heading_path=hit.heading_path,
        tokens=count_text(neutralised(hit.text_in_context)),
        trimmed=hit.trimmed,
    )
