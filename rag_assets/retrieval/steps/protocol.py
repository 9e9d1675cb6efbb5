"""The interface of a search step, and the services that steps are made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rag_assets.retrieval.access import AccessPolicy
from rag_assets.retrieval.altered_entries import AlteredEntries
from rag_assets.retrieval.completeness import BuildCompleteness
from rag_assets.retrieval.question_vectors import VectorsOfQuestions
from rag_assets.retrieval.reranking import RerankerPool
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.search_state import SearchStateReader
from rag_assets.storage.index.protocols import EntrySearcher
from rag_assets.systems.code_memory.retrieval.known_entries import KnownEntries
from rag_assets.systems.code_memory.retrieval.surroundings import KeptSurroundings


class Step(Protocol):
    """A step of a search."""

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Return the progress after this step; the same object if the step does not apply."""
        ...


@dataclass(frozen=True, slots=True)
class SearchServices:
    """The services that steps use, in one event loop.

    Attributes:
        catalog: the catalog's tables, for blocking statements: call them in a thread.
        reader: the catalog's statements for searches.
        searcher: searches of the index.
        vectors: embeds questions.
        rerankers: scores passages.
        policy: decides what callers may read.
        altered: reports entries that were altered in the index.
        known: entries at places that walks reached.
        surroundings: of the nodes that walks met.
        completeness: counts the entries of builds.
    """

    catalog: Catalog
    reader: SearchStateReader
    searcher: EntrySearcher
    vectors: VectorsOfQuestions
    rerankers: RerankerPool
    policy: AccessPolicy
    altered: AlteredEntries = field(default_factory=AlteredEntries)
    known: KnownEntries = field(init=False)
    surroundings: KeptSurroundings = field(default_factory=KeptSurroundings)
    completeness: BuildCompleteness = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", KnownEntries(self.searcher))
        completeness = BuildCompleteness(self.reader, self.searcher)
        object.__setattr__(self, "completeness", completeness)


StepFactory: TypeAlias = Callable[[SearchServices], Step]
