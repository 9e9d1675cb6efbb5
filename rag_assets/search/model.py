"""Search requests and their results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from rag_assets.common.errors import InvalidRequest, RerankFault
from rag_assets.common.invalid_values import describe_first_problem, describe_problem
from rag_assets.common.principals import GUESTS, build_principals
from rag_assets.common.times import parse_boundary
from rag_assets.ingest.chunking.model import BlockPlace, Location
from rag_assets.ingest.parsing.languages import PATTERN, parse_language
from rag_assets.tenants.modes import SearchMode

Role: TypeAlias = Literal["admin", "member", "guest", "orchestrator", "writer"]
"""Role of a token, which determines the rights of its holder."""

SkippableStep: TypeAlias = Literal["rerank", "pgvector", "vectors", "index-incomplete"]
IndexFault: TypeAlias = Literal["entries missing", "entries altered"]
"""Why an index is incomplete: entries that the catalog has are missing, or were altered."""
DegradedReason: TypeAlias = RerankFault | IndexFault | Literal["script not read"]
"""Why a search had to skip a SkippableStep."""

SearchStrategy: TypeAlias = Literal[
    "knn", "text", "hybrid", "walk", "walk+knn", "walk+text", "walk+hybrid"
]
"""How candidates were found."""

MAX_TOP_K = 100
MAX_ACCEPTED_TOP_K = 1_000_000_000
"""Maximum accepted top_k. Some tenants reduce higher values to their own maximum."""
MAX_QUERY = 20_000
MAX_TOKEN_BUDGET = 200_000
MAX_PRINCIPALS = 1_000
MAX_PAGES = 10_000
"""Maximum number of pages that a search may be limited to, including the pages below those
named."""
MAX_NUMBER: Final = 2**53
"""Largest number that all JSON parsers read exactly."""
MAX_PATH = 999
"""Maximum length of a path prefix, in UTF-16 units: the limit of Elasticsearch minus a slash."""

# Postgres does not accept a zero byte in a text.
TenantName = Annotated[str, StringConstraints(min_length=1, max_length=63)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=8_000, pattern=r"^[^\x00]+$")]
_Names = Annotated[tuple[_Name, ...], Field(max_length=100)]


def _require_path_length(path: str) -> str:
    if len(path.encode("utf-16-le", "surrogatepass")) > 2 * MAX_PATH:
        raise ValueError(
            f"a path must have at most {MAX_PATH} characters; some, such as emoji, count twice"
        )
    return path


_Path = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_PATH, pattern=r"^[^\x00]+$"),
    AfterValidator(_require_path_length),
]
_Paths = Annotated[tuple[_Path, ...], Field(max_length=100)]
_Principals = Annotated[tuple[_Name, ...], Field(max_length=MAX_PRINCIPALS)]
_Language = Annotated[
    str,
    StringConstraints(min_length=1, max_length=40),
    AfterValidator(parse_language),
    WithJsonSchema({"type": "string", "pattern": PATTERN, "maxLength": 40}),
]
_Boundary = Annotated[
    datetime,
    BeforeValidator(parse_boundary),
    WithJsonSchema(
        {"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]},
        mode="validation",
    ),
]
_PageUuid = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00]+$")]
_Whole = Annotated[StrictInt, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]
_Real = Annotated[StrictFloat, Field(ge=-MAX_NUMBER, le=MAX_NUMBER, allow_inf_nan=False)]
_Value: TypeAlias = _Name | StrictBool | _Whole | _Real
_Values = Annotated[tuple[_Value | None, ...], Field(max_length=100)]
_Metadata = Annotated[
    dict[_Name, _Value | _Values],
    Field(max_length=20, json_schema_extra={"additionalProperties": False}),
]
_WithoutMetadata = Annotated[
    dict[_Name, Annotated[tuple[_Value, ...], Field(min_length=1, max_length=100)]],
    Field(max_length=5, json_schema_extra={"additionalProperties": False}),
]


def _require_number(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise ValueError("it must be a number")  # noqa: TRY004 - Pydantic passes on no TypeError
    return value


# Accept numbers as in JSON: 5.0 is a whole number; true and "5" are not numbers.
NUMBER = BeforeValidator(_require_number)
_TopK = Annotated[
    int,
    Field(ge=1, le=MAX_ACCEPTED_TOP_K),
    NUMBER,
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_TOP_K}),
]
_Cosine = Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False), NUMBER]
_TokenBudget = Annotated[int, Field(ge=1, le=MAX_TOKEN_BUDGET), NUMBER]

_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,17})?", re.ASCII)


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Caller(_FrozenModel):
    """The caller of a request.

    Attributes:
        principals: names to which access may have been granted: a subject, its groups, and the
            name that its role adds: `members` or `guests`.
        name: recorded in the events of the search; grants no access.
        role: role of the caller's token; None for the operator, or for a program in the same
            process.
        organization: organization of the caller's token.
    """

    principals: _Principals = ()
    name: _Name | None = None
    role: Role | None = None
    organization: str | None = None

    @classmethod
    def acting(cls, principals: Iterable[str], role: Role | None = None) -> Self:
        """Return the caller that a token with these principals would represent.

        Without principals and role, it is the operator, who reads public documents. The default
        role is `guest` if `guests` is among the principals, else `member`.

        Raises:
            InvalidRequest: a principal is empty, too long or not a text, or there are too many.
        """
        named = tuple(principals)
        if role is None and named:
            role = "guest" if GUESTS in named else "member"
        try:
            return cls(principals=named, role=role)
        except ValidationError as error:
            raise InvalidRequest(
                f"the caller is not valid: {describe_first_problem(error)}",
                hint="correct that principal",
            ) from None

    @model_validator(mode="after")
    def _add_role_principal(self) -> Self:
        principals = build_principals(self.role, self.principals)
        if principals != self.principals:
            object.__setattr__(self, "principals", principals)
        return self


class Filters(_FrozenModel):
    """Conditions for hits, applied within the search.

    A condition that is None is not applied. An empty list matches no document, so that an
    application that computed an empty list of allowed documents gets no hits.

    Attributes:
        documents: the document has one of these ids.
        paths: the document lies in one of these: a source, a folder of a source, or a file, as
            in a hit's uri.
        languages: the text is in one of these: an ISO 639-1 code or, for source code, the
            language's name. In a tag such as de-AT, only the language counts.
        modified_after: the content was made at this time or later; a date means its midnight in
            UTC.
        modified_before: the content was made before this time.
        tags: the document has all of these tags.
        metadata: the document has these values: for each key a single value, or a list of
            alternatives; null in a list stands for a key without a value. Numbers are compared as
            numbers: 2024 finds 2024.0.
        without_metadata: the document has none of these values.
        within: in a workspace, the document is on one of these pages, or on a page below one of
            them; up to 10,000 pages.
    """

    documents: _Names | None = None
    paths: _Paths | None = None
    languages: Annotated[tuple[_Language, ...], Field(max_length=100)] | None = None
    modified_after: _Boundary | None = None
    modified_before: _Boundary | None = None
    tags: _Names | None = None
    metadata: _Metadata = {}
    without_metadata: _WithoutMetadata = {}
    within: Annotated[tuple[_PageUuid, ...], Field(max_length=MAX_PAGES)] | None = None

    @property
    def wanted_metadata(self) -> dict[str, tuple[str | None, ...]]:
        """Return the values that a hit must have, by key, in all forms in the index.

        A hit must have at least one of the forms for each key; None stands for a missing key.
        """
        return {
            key: _list_stored_forms(value if isinstance(value, tuple) else (value,))
            for key, value in self.metadata.items()
        }

    @property
    def unwanted_metadata(self) -> dict[str, tuple[str, ...]]:
        """Return the values that a hit must not have, by key, in all forms in the index."""
        return {
            key: tuple(filter(None, _list_stored_forms(values)))
            for key, values in self.without_metadata.items()
        }

    @model_validator(mode="after")
    def _check_modified_range(self) -> Self:
        after, before = self.modified_after, self.modified_before
        if after is not None and before is not None and after >= before:
            raise ValueError("modified_after must be earlier than modified_before")
        return self


def _list_stored_forms(values: Iterable[_Value | None]) -> tuple[str | None, ...]:
    """Return all forms in which the index may store values; a number has several."""
    return tuple(dict.fromkeys(word for value in values for word in _list_stored_forms_of(value)))


def _list_stored_forms_of(value: _Value | None) -> tuple[str | None, ...]:
    if value is None:
        return (None,)
    if isinstance(value, str):
        number = _find_written_number(value)
        return (value,) if number is None else _list_stored_forms_of(number)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    whole_number_forms = (str(int(value)), f"{int(value)}.0") if value == int(value) else ()
    # The stores write exponents in different forms: 1e-07 or 1e-7.
    short = str(value).replace("e-0", "e-").replace("e+", "e")
    return tuple(dict.fromkeys((*whole_number_forms, str(value), short)))


def _find_written_number(text: str) -> float | None:
    """Parse a number in its usual notation; None for other texts, such as the version 1.10."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text) if "." in text else int(text)
    return number if text in _list_stored_forms_of(number) else None


class Question(_FrozenModel):
    """A question without its caller; None means the tenant's default.

    Attributes:
        query: the question, in words.
        top_k: maximum number of hits, up to 100; a workspace returns at most 20.
        source_types: source types that a hit may have; any by default. A type that the tenant's
            sources cannot have is refused.
        filters: further conditions for hits.
        must_include_paths: paths as in Filters.paths; documents in these paths rank higher.
        min_score: cosine below which a passage is left out, in every mode.
        mode: whether to search by vectors, by words, or by both, fused.
        rerank: whether to rerank the top hits with a cross-encoder.
        token_budget: maximum number of tokens of all hits together.
        model: the chat model that will read the hits; by default the tenant's own model. If the
            tenant's profile sets a share, the hits take at most this share of the model's context
            window.
        route_name: in source code, a route by its name, its path, or method and path. Code
            related to it is found first, as for names in the question.
        controller_class: in source code, a controller, used like route_name.
        table_name: in source code, a table, used like route_name.
        include_run_summaries: whether changes and summaries of runs may be hits.
    """

    query: Annotated[str, StringConstraints(max_length=MAX_QUERY, pattern=r"\S")]
    top_k: _TopK | None = None
    source_types: _Names | None = None
    filters: Filters = Filters()
    must_include_paths: _Paths = ()
    min_score: _Cosine | None = None
    mode: SearchMode | None = None
    rerank: bool | None = None
    token_budget: _TokenBudget | None = None
    model: _Name | None = None
    route_name: _Name | None = None
    controller_class: _Name | None = None
    table_name: _Name | None = None
    include_run_summaries: bool = True


class SearchRequest(Question):
    """One question to one tenant's knowledge, and its caller.

    Attributes:
        caller: who makes the request; without a caller only public documents are found.
        use: what the hits are used for; selects the threshold if there is one for each use.
    """

    caller: Caller = Caller()
    use: str | None = None

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Build a request from these values; leave out values of None."""
        present_values = {name: value for name, value in values.items() if value is not None}
        try:
            return cls.model_validate(present_values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            if first["loc"] == ("query",) and first["type"] == "string_pattern_mismatch":
                raise InvalidRequest("the question is empty", hint="ask a question") from None
            raise InvalidRequest(
                f"the search request is not valid: {describe_problem(first)}",
                hint="correct that field",
            ) from None


@dataclass(frozen=True, slots=True)
class Origin:
    """The repository of a hit.

    Attributes:
        repository: name of the repository.
        commit: id of the commit that its source now reads; None before the first commit.
        differs: whether the file in the worktree differs from the commit; None without a
            worktree.
    """

    repository: str
    commit: str | None
    differs: bool | None


ScoreKind: TypeAlias = Literal["cosine", "words", "fused", "reranker"]
"""Kind of the scores of hits: cosines, word scores, fused scores, or a reranker's."""


@dataclass(frozen=True, slots=True)
class PassageRange:
    """A passage that is part of a hit, as the document was chunked.

    Attributes:
        chunk_id, ordinal, page: see Hit.
        start, end: character offsets in the document's parsed text, half open.
    """

    chunk_id: str
    ordinal: int
    start: int
    end: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Hit(Location):
    """A passage that matches a question, or several adjoining passages of one document, merged.

    Attributes:
        number: the number to cite the hit by, counted from 1.
        ordinal: position of the passage in its document, counted from 0; for merged passages,
            the position of the best passage.
        score: the score by which hits are ordered (see search.scoring), never higher than the
            score of the previous hit; None for a passage that no search returned.
        excerpt: the part of the text that has most of the question's words.
        start, end: character offsets in the document's parsed text, half open.
        media_type: media type of the document's content; None in a build of the first schema,
            which answers until a build of the current schema is complete.
        language: language of the text, as in Filters.languages; None if uncertain.
        modified_at: when the document's content was made, to the millisecond. In builds of
            earlier schemas, this and the language are None.
        page, slide, sheet, row_start, row_end, line_start, line_end: see Location.
        chunk_id: `{tenant}:{source path}:{byte offset}`, for people; for merged passages, the
            id of the best passage.
        source_sha256: hash of the document's content when it was last listed.
        stale: whether the document has changed since it was indexed, according to the last
            listing of its source.
        trimmed: whether the end of the text was cut to fit into the token budget.
        also: uris of other documents that the caller may read with the same or nearly the same
            text; uris of more than 8,191 characters are left out.
        source_type: source type of the document; see Question.source_types.
        symbol: the qualified name of the definition in source code; otherwise None.
        origin: the repository of the document; None for other sources, and if the answering
            process cannot read the repository.
        source_id: for a pushed record, its id in its application; otherwise None.
        page_uuid: for a pushed record, the page or database that it belongs to.
        block_id: id of the block that contains the excerpt, if blocks have ids.
        url: the uri, with the block id as its fragment.
        blocks: the blocks in its text, if blocks have ids, each with the offset of its first
            character, on the same scale as `start`.
        context: lines from above the passage that a reader needs if it starts within a table, a
            list or code: the column names, the sentence that introduces the list, the enclosing
            lines. "" for most passages, and in builds of earlier schemas.
        breadcrumb: for a pushed record on a page, the titles of the pages above it, starting
            with the root. The record's own page is included unless the record is that page. Only
            pages that the caller may read are included.
        score_kind: kind of the score, the same for all hits of a search.
        cosine: cosine between question and passage, which thresholds are compared with; None if
            the question was not embedded.
        ranges: the passages in its text, in document order.
    """

    number: int
    ordinal: int
    score: float | None
    text: str
    excerpt: str
    uri: str
    title: str | None
    heading_path: tuple[str, ...]
    media_type: str | None
    language: str | None
    modified_at: datetime | None
    start: int
    end: int
    document_id: str
    chunk_id: str
    source_sha256: str | None
    stale: bool
    trimmed: bool = False
    also: tuple[str, ...] = ()
    source_type: str = ""
    symbol: str | None = None
    origin: Origin | None = None
    source_id: str | None = None
    page_uuid: str | None = None
    block_id: str | None = None
    url: str = ""
    blocks: tuple[BlockPlace, ...] = ()
    breadcrumb: tuple[str, ...] = ()
    score_kind: ScoreKind = "cosine"
    cosine: float | None = None
    ranges: tuple[PassageRange, ...] = ()
    context: str = ""

    @property
    def text_in_context(self) -> str:
        """Return the text preceded by its context, as a model reads it."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores that ranked a hit.

    Attributes:
        number: number of the hit.
        cosine: cosine between question and passage; None if the question was not embedded.
        fused: the weighted sum of its normalised scores (see fusion.py).
        by_vector, by_words: its rank by vectors and by words, counted from 1; None if it is not
            in that ranking.
        rerank: its score from the reranker, on the model's scale; None if it was not reranked.
    """

    number: int
    cosine: float | None
    fused: float
    by_vector: int | None
    by_words: int | None
    rerank: float | None = None


@dataclass(frozen=True, slots=True)
class Debug:
    """Details of a search: its timings, scores, skipped steps and followed relations.

    Attributes:
        latency_ms: milliseconds by step.
        total_candidates: number of considered passages that the caller may read.
        scores: the scores of each hit.
        threshold: cosine below which passages were left out; None without a threshold.
        nearest: highest cosine of a passage that the caller may read, even if it was left out;
            None if the question was not embedded, or the search had no results.
        degraded: for each step in SearchAnswer.degraded, why it was skipped.
        strategy: "walk" if relations alone answered; "walk+hybrid", for example, if the index
            was searched too; otherwise the mode.
        paths: the names along which relations were followed; each path leads from a name in the
            question or in a search result to a reached name.
    """

    strategy: SearchStrategy
    latency_ms: Mapping[str, float]
    total_candidates: int
    scores: tuple[Scores, ...] = ()
    threshold: float | None = None
    nearest: float | None = None
    degraded: Mapping[SkippableStep, DegradedReason] = field(default_factory=dict)
    paths: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Clarification:
    """A question to the user when no passage was near enough.

    Attributes:
        question: the question to ask.
        names: similar names in a repository that the caller may read, nearest first.
    """

    question: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnmatchedFilter:
    """A value of a request that no readable document matches, or that the build cannot serve.

    Attributes:
        field: position of the value in the request, such as filters.paths.0 or mode.
        problem: what is wrong, in words.
    """

    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Hits, best first; empty for a disabled tenant.

    Attributes:
        needs_clarification: whether no passage was near enough, so that the user should be
            asked.
        clarification: in source code, what to ask; otherwise None.
        omitted: number of hits left out because they did not fit into the token budget.
        generation: the generation that answered; None before the first generation is complete.
        embedder: the embedder of that generation's vectors: provider, model and more.
        degraded: requested steps that were skipped because they failed or took too long.
            "rerank": the hits are in the order in which they were found. "pgvector": the index
            answered instead. "vectors": words alone ranked, since the embedder does not read the
            question's script. "index-incomplete": the index lacks entries that the catalog has, or
            holds altered entries, which are left out.
        warnings: filter values that match no document, and `mode` if it was "knn" and the
            embedder does not read the question's script.
    """

    hits: tuple[Hit, ...] = ()
    disabled: bool = False
    needs_clarification: bool = False
    clarification: Clarification | None = None
    omitted: int = 0
    generation: int | None = None
    embedder: str | None = None
    mode: SearchMode = "hybrid"
    degraded: tuple[SkippableStep, ...] = ()
    warnings: tuple[UnmatchedFilter, ...] = ()
    debug: Debug | None = None
