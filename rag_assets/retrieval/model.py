"""Requests for searches, and their results."""

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
from rag_assets.common.principals import GUESTS, principals_of
from rag_assets.common.times import boundary_of
from rag_assets.ingest.chunking.block_places import BlockPlace
from rag_assets.ingest.chunking.location import Location
from rag_assets.ingest.parsing.language_names import PATTERN, language_named
from rag_assets.tenants.modes import SearchMode
from rag_assets.tenants.problems import problem_of

Role: TypeAlias = Literal["admin", "member", "guest", "orchestrator", "writer"]
"""What the holder of a token may do."""

SkippableStep: TypeAlias = Literal["rerank", "pgvector", "vectors", "index-incomplete"]
IndexFault: TypeAlias = Literal["entries missing", "entries altered"]
"""Why an index is incomplete: it lacks entries of the catalog, or some were altered in it."""
DegradedReason: TypeAlias = RerankFault | IndexFault | Literal["script not read"]
"""A step that a search can go on without."""

SearchStrategy: TypeAlias = Literal[
    "knn", "text", "hybrid", "walk", "walk+knn", "walk+text", "walk+hybrid"
]
"""How candidates were found."""

MAX_TOP_K = 100
LARGEST_TOP_K = 1_000_000_000
"""What may be asked for: of some tenants more than there may be is as many as there may be."""
MAX_QUERY = 20_000
MAX_TOKEN_BUDGET = 200_000
MAX_PRINCIPALS = 1_000
MAX_PAGES = 10_000
"""Pages that a search may be narrowed to, those below the named ones included."""
MAX_NUMBER: Final = 2**53
"""Up to here all readers of JSON agree on a number."""
MAX_PATH = 999
"""What Elasticsearch takes as the beginning of a value, in units of UTF-16, less a slash."""

# Postgres takes no zero byte in a text.
_Name = Annotated[str, StringConstraints(min_length=1, max_length=8_000, pattern=r"^[^\x00]+$")]
_Names = Annotated[tuple[_Name, ...], Field(max_length=100)]


def _short(path: str) -> str:
    if len(path.encode("utf-16-le", "surrogatepass")) > 2 * MAX_PATH:
        raise ValueError(f"at most {MAX_PATH} characters, some of which count twice")
    return path


_Path = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_PATH, pattern=r"^[^\x00]+$"),
    AfterValidator(_short),
]
_Paths = Annotated[tuple[_Path, ...], Field(max_length=100)]
_Principals = Annotated[tuple[_Name, ...], Field(max_length=MAX_PRINCIPALS)]
_Language = Annotated[
    str,
    StringConstraints(min_length=1, max_length=40),
    AfterValidator(language_named),
    WithJsonSchema({"type": "string", "pattern": PATTERN, "maxLength": 40}),
]
_Boundary = Annotated[
    datetime,
    BeforeValidator(boundary_of),
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


def _number(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise ValueError("it must be a number")  # noqa: TRY004 - Pydantic passes on no TypeError
    return value


# As JSON has them, where 5.0 is a whole number, while true and "5" are none.
NUMBER = BeforeValidator(_number)
_TopK = Annotated[
    int,
    Field(ge=1, le=LARGEST_TOP_K),
    NUMBER,
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MAX_TOP_K}),
]
_Cosine = Annotated[float, Field(ge=-1.0, le=1.0, allow_inf_nan=False), NUMBER]
_TokenBudget = Annotated[int, Field(ge=1, le=MAX_TOKEN_BUDGET), NUMBER]


_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,17})?", re.ASCII)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Caller(_Model):
    """Who makes a request.

    Attributes:
        principals: the names under which access may have been granted: a subject, its groups, and
            what its role adds: `members`, or `guests`.
        name: under which the events of the search are kept; grants nothing.
        role: of its token; None: the operator, or a program in the same process.
        organization: of its token.
    """

    principals: _Principals = ()
    name: _Name | None = None
    role: Role | None = None
    organization: str | None = None

    @classmethod
    def acting(cls, principals: Iterable[str], role: Role | None = None) -> Self:
        """Return the caller that a token of these principals would make.

        Args:
            principals: a subject and its groups; none of them and no role: the operator, who reads
                what is public.
            role: of the token; by default a member's, or a guest's where `guests` is named.
        """
        named = tuple(principals)
        if role is None and named:
            role = "guest" if GUESTS in named else "member"
        return cls(principals=named, role=role)

    @model_validator(mode="after")
    def _has_its_role(self) -> Self:
        named = principals_of(self.role, self.principals)
        if named != self.principals:
            object.__setattr__(self, "principals", named)
        return self


class Filters(_Model):
    """What a hit must be, inside the search.

    None narrows nothing. An empty list matches nothing: an application that computed an empty list
    of allowed documents gets no hits.

    Attributes:
        documents: one of these document ids.
        paths: in one of these: a source, a folder of it, or a file, as in a hit's uri.
        languages: in one of these: an ISO 639-1 code, or of source code the language's name; of
            a tag as in de-AT only the language counts.
        modified_after: of content that was made then or later; a date means its midnight in UTC.
        modified_before: of content that was made earlier.
        tags: with all of these.
        metadata: with these values: one for a key, or several of which it has one; null among
            them stands for a key without a value. Numbers are compared as numbers: 2024 finds
            2024.0.
        without_metadata: with none of these values.
        within: of a workspace: on one of these pages, or on a page below one; up to 10,000 pages.
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
        """Return by key the stored spellings of which a hit must have one."""
        return {
            key: _spellings(value if isinstance(value, tuple) else (value,))
            for key, value in self.metadata.items()
        }

    @property
    def unwanted_metadata(self) -> dict[str, tuple[str, ...]]:
        """Return by key the stored spellings of which a hit must have none."""
        return {
            key: tuple(filter(None, _spellings(values)))
            for key, values in self.without_metadata.items()
        }

    @model_validator(mode="after")
    def _has_a_span(self) -> Self:
        after, before = self.modified_after, self.modified_before
        if after is not None and before is not None and after >= before:
            raise ValueError("modified_after must be earlier than modified_before")
        return self


def _spellings(values: Iterable[_Value | None]) -> tuple[str | None, ...]:
    """Return the words that the index may hold for values; a number has several."""
    return tuple(dict.fromkeys(word for value in values for word in _words_of(value)))


def _words_of(value: _Value | None) -> tuple[str | None, ...]:
    if value is None:
        return (None,)
    if isinstance(value, str):
        number = _written_number(value)
        return (value,) if number is None else _words_of(number)
    if isinstance(value, bool):
        return ("true" if value else "false",)
    whole = (str(int(value)), f"{int(value)}.0") if value == int(value) else ()
    # The stores write exponents in their own ways: 1e-07, 1e-7.
    short = str(value).replace("e-0", "e-").replace("e+", "e")
    return tuple(dict.fromkeys((*whole, str(value), short)))


def _written_number(text: str) -> float | None:
    """Return the number that a text is the usual spelling of, so not of 1.10, a version."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text) if "." in text else int(text)
    return number if text in _words_of(number) else None


class Question(_Model):
    """A question without its caller; None takes the tenant's default.

    Attributes:
        query: in words.
        top_k: hits at most, up to 100; of a workspace there are 20 at most, however many are asked
            for.
        source_types: kinds of source that a hit may be from; any by default. A kind that the
            tenant's sources cannot have is refused.
        filters: what else a hit must be.
        must_include_paths: as Filters.paths; what lies in them ranks higher.
        min_score: cosine below which a hit is left out, in every mode.
        mode: by vectors, by words, or by both fused.
        rerank: Rerank the top hits with a cross-encoder.
        token_budget: tokens of all hits together at most.
        model: the chat model that the hits are for: they take a share of its context window at
            most, where the tenant's profile has one; by default the tenant's own model.
        route_name: of source code: a route by its name, its path, or method and path; what is
            related to it is found first, as with names in the question.
        controller_class: likewise a controller.
        table_name: likewise a table.
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
        caller: who makes the request; without one only what is public is found.
        use: what the hits are for, which decides the threshold where the profile tells uses apart.
    """

    caller: Caller = Caller()
    use: str | None = None

    @classmethod
    def of(cls, **values: Any) -> Self:
        """A request made of the values given; None for those that are not.

        Raises:
            InvalidRequest: a value is not usable; names the field.
        """
        given = {name: value for name, value in values.items() if value is not None}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            if first["loc"] == ("query",) and first["type"] == "string_pattern_mismatch":
                raise InvalidRequest("the question is empty", hint="give it a question") from None
            raise InvalidRequest(
                f"the search cannot be made: {problem_of(first)}", hint="correct that field"
            ) from None


@dataclass(frozen=True, slots=True)
class Origin:
    """The repository of a hit.

    Attributes:
        repository: its name.
        commit: id of the one that its source reads now; None where there is none yet.
        differs: whether the file in the worktree is not as the commit has it; None where there is
            no worktree.
    """

    repository: str
    commit: str | None
    differs: bool | None


ScoreKind: TypeAlias = Literal["cosine", "words", "fused", "reranker"]
"""What the scores of hits are: cosines, scores by words, of both fused, or a reranker's."""


@dataclass(frozen=True, slots=True)
class PassageRange:
    """A passage that a hit was made of, as the document was cut.

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
    """A passage that answers, or several of one document that overlap or adjoin.

    Attributes:
        number: to cite it by, from 1.
        ordinal: its place among the passages of its document, from 0; of several merged ones the
            best one's.
        score: by which hits are ordered, never higher than that of the hit before; None of a
            passage that was not searched for.
        excerpt: the part of the text that has most of the question's words.
        start, end: character offsets in the document's parsed text, half open.
        media_type: what the document's content is; None in a build of the first schema, which
            answers until the present one is complete.
        language: what it is written in, as Filters.languages; None where that is not sure.
        modified_at: when its content was made, to the millisecond. It and the language are None
            in builds of earlier schemas.
        page, slide, sheet, row_start, row_end, line_start, line_end: see Location.
        chunk_id: `{tenant}:{source path}:{byte offset}`, for people; of several merged passages
            the best one's.
        source_sha256: of the document's content as it was listed last.
        stale: whether the document changed since, as far as its source was listed.
        trimmed: whether the end of its text was left out, to keep within the budget.
        also: uris of other documents that the caller may read and that hold the same text, or
            hardly another one; none of more than 8,191 characters.
        source_type: what kind of source it is from; see Question.source_types.
        symbol: the qualified name of what it defines, in source code; else None.
        origin: the repository that it is from; None for other sources, and where the repository
            cannot be read by who answers.
        source_id: of a pushed record, its id in its application; None for all else.
        page_uuid: of a pushed record, the page or database that it belongs to.
        block_id: the block that the excerpt is from, where blocks have ids.
        url: the uri, and the block as its fragment.
        blocks: the blocks in its text, where blocks have ids, each with its first character, an
            offset as `start` is.
        context: lines from above the passage that a reader of it lacks, where it begins within a
            table, a list or code: the names of the columns, the sentence that leads to the list,
            the lines that enclose it; "" for most passages, and in builds of earlier schemas.
        breadcrumb: of a pushed record on a page, the titles of the pages above it, from the root
            on, and of its own page unless it is that page; only of pages that the caller may read.
        score_kind: what the score is, the same for all hits of a search.
        cosine: of question and passage, which thresholds are compared with; None where the
            question was not embedded.
        ranges: the passages in its text, in the order of the document.
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
        """The text below its context, as a model reads it."""
        return f"{self.context}\n{self.text}" if self.context else self.text


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores that ranked a hit.

    Attributes:
        number: of the hit.
        cosine: of question and passage; None where the question was not embedded.
        fused: the sum of its normalised scores (see fusion.py).
        by_vector, by_words: its rank in either, from 1; None where it is not among the candidates.
        rerank: its score by the reranker, in the scale of the model; None where it was not
            reranked.
    """

    number: int
    cosine: float | None
    fused: float
    by_vector: int | None
    by_words: int | None
    rerank: float | None = None


@dataclass(frozen=True, slots=True)
class Debug:
    """How a result came about.

    Attributes:
        latency_ms: by step.
        total_candidates: passages considered, of those that the caller may read.
        scores: of each hit.
        threshold: cosine below which passages were left out; None without one.
        nearest: highest cosine of a passage that the caller may read, left out or not; None where
            the question was not embedded, or nothing was found.
        degraded: why each step was left out that SearchAnswer.degraded names.
        strategy: "walk" where relations alone answered, "walk+hybrid" where they were searched,
            too; else the mode.
        paths: names along which relations were followed, from one that the question names, or
            that was found, to each that was reached.
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
    """What to ask the user, where nothing was near enough.

    Attributes:
        question: to ask.
        names: of a repository that the caller may read and that are like those of the question,
            the nearest first.
    """

    question: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnmatchedFilter:
    """A value of a request that no readable document matches, or that the build cannot serve.

    Attributes:
        field: where the value stands in the request, as in filters.paths.0 or mode.
        problem: in words.
    """

    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Hits, best first; none for a disabled tenant.

    Attributes:
        needs_clarification: nothing was near enough: better to ask the user than to guess.
        clarification: what to ask, of source code; None elsewhere.
        omitted: hits that were left out, since they did not fit into the budget of tokens.
        generation: that answered; None before the first is complete.
        embedder: that made its vectors: provider, model and more.
        degraded: steps that were wanted and had to be left out, as they failed or took too long:
            after "rerank" the hits are in the order in which they were found; after "pgvector" the
            index answered in its place; after "vectors" words alone ranked, since the embedder does
            not read the question's script. "index-incomplete": the index lacks entries that the
            catalog has, or holds altered ones, which are left out.
        warnings: values of filters that match nothing, and `mode` where it was "knn" and the
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
