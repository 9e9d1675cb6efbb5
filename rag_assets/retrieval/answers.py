"""Requests for answers in sentences, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from rag_assets.ingest.chunking.location import Location
from rag_assets.models.chat.protocol import MOST_WRITTEN
from rag_assets.retrieval.model import (
    NUMBER,
    Hit,
    SearchRequest,
    SkippableStep,
    UnmatchedFilter,
)

CONTEXT_TOKENS = 4_000
"""Of the passages that a model is given, by default."""
MOST_CONTEXT_TOKENS = 32_000

ContextBudget: TypeAlias = Annotated[int, Field(ge=1, le=MOST_CONTEXT_TOKENS), NUMBER]
AnswerLength: TypeAlias = Annotated[int, Field(ge=16, le=MOST_WRITTEN), NUMBER]
SWITCHED_OFF = "The knowledge base is switched off. Ask one of its admins to switch it on."
Reason: TypeAlias = Literal["nothing found", "over budget", "not answered", "nothing supported"]


class AnswerRequest(SearchRequest):
    """One question to be answered in sentences, and its caller.

    Attributes:
        token_budget: tokens of the passages that the model is given, 4,000 by default.
        max_tokens: that it may write, thoughts that are not shown included; by default as the
            tenant's chat model is configured.
    """

    token_budget: ContextBudget | None = None
    max_tokens: AnswerLength | None = None


@dataclass(frozen=True, slots=True)
class Citation(Location):
    """A passage that the answer cites.

    Attributes:
        number: that it is cited by.
        page, slide, sheet, row_start, row_end, line_start, line_end: see Location.
        excerpt: the part of it that the sentences which cite it are about.
        source_type, source_id, page_uuid: of its document; see Hit.
        block_id: the block that the excerpt is from, where blocks have ids.
        url: the uri, and the block as its fragment.
        breadcrumb: titles of the pages above it; see Hit.
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
    """A claim that is marked in an answer.

    Attributes:
        text: the sentence, without citations.
        missing: its numbers, dates, units and names that the cited passages do not have, and words
            that these have otherwise.
    """

    text: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """An answer of which every claim cites a passage; a disabled tenant has none, with the reason.

    Attributes:
        answer: empty where there is none.
        citations: what it cites, by number.
        hits: the passages that the model was given.
        removed: sentences of the model's that were removed, since they cite nothing, what does
            not exist, or what has none of their words, not their figures, or says the contrary.
        unsupported: claims that stay in the answer with `[unsupported]` in place of their
            citations, where the tenant's `unsupported_claims` is `mark`.
        unchecked: sentences of the answer in another language than the passages that they cite.
            Their figures and names are in these; whether the rest is was not checked.
        needs_clarification: there is no answer: better to ask the user than to guess.
        reason: why there is none.
        notice: what whoever asks is to be told in place of an answer: that the knowledge is
            switched off, and who switches it on.
        cut: the model stopped since it may write no more.
        degraded: steps that the search for passages had to leave out; see SearchAnswer.
        warnings: values of filters that match nothing.
        model: provider and model; None where none was used.
        input_tokens, output_tokens: that the model is charged for.
        latency_ms: by step.
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
