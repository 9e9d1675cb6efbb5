"""Requests for answers in sentences, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from rag_assets.ingest.chunking.model import Location
from rag_assets.models.chat import MAX_ANSWER_TOKENS
from rag_assets.search.model import NUMBER, Hit, SearchRequest, SkippableStep, UnmatchedFilter

CONTEXT_TOKENS = 4_000
"""Default token budget for the passages that a model is given."""
MAX_CONTEXT_TOKENS = 32_000

ContextBudget: TypeAlias = Annotated[int, Field(ge=1, le=MAX_CONTEXT_TOKENS), NUMBER]
AnswerLength: TypeAlias = Annotated[int, Field(ge=16, le=MAX_ANSWER_TOKENS), NUMBER]
SWITCHED_OFF = "The knowledge base is switched off. Ask one of its admins to switch it on."
Reason: TypeAlias = Literal["nothing found", "over budget", "not answered", "nothing supported"]


class AnswerRequest(SearchRequest):
    """One question to be answered in sentences, and its caller.

    Attributes:
        token_budget: maximum tokens of the passages that the model is given; 4,000 by default.
        max_tokens: maximum tokens that the model may write, including hidden reasoning; by
            default the limit in the tenant's chat model configuration.
    """

    token_budget: ContextBudget | None = None
    max_tokens: AnswerLength | None = None


@dataclass(frozen=True, slots=True)
class Citation(Location):
    """A passage that the answer cites.

    Attributes:
        number: the number by which the answer cites the passage.
        page, slide, sheet, row_start, row_end, line_start, line_end: see Location.
        excerpt: the part of the passage that the citing sentences are about.
        source_type, source_id, page_uuid: of the passage's document; see Hit.
        block_id: id of the block that contains the excerpt; None if blocks have no ids.
        url: the document's uri, with the block id as its fragment.
        breadcrumb: titles of the pages above the document; see Hit.
    """

    number: int
    uri: str
    document_id: str
    title: str | None
    excerpt: str
    source_type: str = ""
    source_id: str | None = None
    page_uuid: str | None = None
    block_id: str | None = None
    url: str = ""
    breadcrumb: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnsupportedClaim:
    """A claim that is marked as unsupported in an answer.

    Attributes:
        text: the sentence, without citations.
        missing: numbers, dates, units and names of the claim that the cited passages do not
            have, and words of the claim that these passages contradict.
    """

    text: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """An answer in which every claim cites a passage. For a disabled tenant there is only a notice.

    Attributes:
        answer: empty if the question was not answered.
        citations: the cited passages, ordered by number.
        hits: the passages that the model was given.
        removed: number of the model's sentences that were removed. A sentence is removed if it
            cites no passage or an unknown passage, or if the cited passage lacks its words or
            figures, or contradicts it.
        unsupported: claims that stay in the answer with `[unsupported]` in place of their
            citations, if the tenant's `unsupported_claims` is `mark`.
        unchecked: sentences in a different language from the passages they cite. Only their
            figures and names were checked against the passages.
        needs_clarification: the question was not answered; ask the user rather than guess.
        reason: why the question was not answered.
        notice: text to show instead of an answer; says that the knowledge base is switched off,
            and who can switch it on.
        cut: whether the model stopped at its token limit.
        degraded: steps that the search for passages had to skip; see SearchAnswer.
        warnings: filter values that match no document.
        model: provider and model; None if no model was used.
        input_tokens, output_tokens: tokens that the model's provider charges for.
        latency_ms: milliseconds by step.
    """

    answer: str = ""
    citations: tuple[Citation, ...] = ()
    hits: tuple[Hit, ...] = ()
    removed: int = 0
    unsupported: tuple[UnsupportedClaim, ...] = ()
    unchecked: tuple[str, ...] = ()
    needs_clarification: bool = False
    reason: Reason | None = None
    disabled: bool = False
    notice: str | None = None
    cut: bool = False
    degraded: tuple[SkippableStep, ...] = ()
    warnings: tuple[UnmatchedFilter, ...] = ()
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    latency_ms: Mapping[str, float] = field(default_factory=dict)
