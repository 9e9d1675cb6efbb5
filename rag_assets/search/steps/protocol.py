"""The interface of a search step, and the services that steps are made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

from rag_assets.search.access import AccessPolicy
from rag_assets.search.altered_entries import AlteredEntries
from rag_assets.search.completeness import BuildCompleteness
from rag_assets.search.known_entries import KnownEntries
from rag_assets.search.question_vectors import VectorsOfQuestions
from rag_assets.search.reranking import RerankerPool
from rag_assets.search.search_progress import SearchProgress
from rag_assets.storage.catalog.builds.search_state import SearchStateReader
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.index.protocols import EntrySearcher

ServiceT = TypeVar("ServiceT")


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
        known: entries at places that steps asked for.
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
    _of_systems: dict[object, Any] = field(default_factory=dict)
    completeness: BuildCompleteness = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", KnownEntries(self.searcher))
        completeness = BuildCompleteness(self.reader, self.searcher)
        object.__setattr__(self, "completeness", completeness)

    def of_system(self, make: Callable[[], ServiceT]) -> ServiceT:
        """Return a service of a system, created only once for these services.

        Args:
            make: creates the service; for example its class.
        """
        if make not in self._of_systems:
            self._of_systems[make] = make()
        found: ServiceT = self._of_systems[make]
        return found


class TrustedStep:
    """A step that belongs to one of this project's systems.

    The plan keeps all changes that such a step makes, as for a built-in step (see SearchPlan). The
    candidates that it adds are verified like all others.

    Attributes:
        after, before: steps that must run before and after this one, if they are in the same
            list.
    """

    after: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[tuple[str, ...]] = ()


StepFactory: TypeAlias = Callable[[SearchServices], Step]
