"""What a search is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.errors import ConfigurationError
from rag_assets.tenants.model import SearchMode

MAX_TOP_K = 100


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One question to one tenant's knowledge; None takes the tenant's default.

    Attributes:
        min_score: cosine below which a hit is left out, in every mode.
    """

    query: str
    top_k: int | None = None
    min_score: float | None = None
    mode: SearchMode | None = None

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise ConfigurationError("the question is empty", hint="ask something")
        if self.top_k is not None and not 1 <= self.top_k <= MAX_TOP_K:
            raise ConfigurationError(f"top_k is {self.top_k}", hint=f"choose 1 to {MAX_TOP_K} hits")
        if self.min_score is not None and not -1.0 <= self.min_score <= 1.0:
            raise ConfigurationError(
                f"min_score is {self.min_score}", hint="a cosine lies between -1 and 1"
            )


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that answers.

    Attributes:
        score: cosine of question and passage, whatever put the hit in its place.
        start, end: character offsets in the document's parsed text, half open.
        media_type: what the document's content is; None in a build of the first schema, which
            answers until the present one is complete.
        page, slide, sheet, row_start, row_end, line_start, line_end: where in the document it
            stands, counted from 1, as far as the format has such places.
        chunk_id: `{tenant}:{source path}:{byte offset}`, for people.
    """

    score: float
    text: str
    uri: str
    title: str | None
    heading_path: tuple[str, ...]
    media_type: str | None
    page: int | None
    slide: int | None
    sheet: str | None
    row_start: int | None
    row_end: int | None
    start: int
    end: int
    line_start: int | None
    line_end: int | None
    document_id: str
    chunk_id: str


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Hits, best first; a disabled tenant has none and says so."""

    hits: tuple[Hit, ...] = ()
    disabled: bool = False
    generation: int | None = None
    mode: SearchMode = "hybrid"
