"""Question readers: how systems understand questions about texts that their chunkers read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

from rag_assets.plugins.registry import Systems, installed_systems
from rag_assets.retrieval.model import SearchAnswer
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.tenants.model import Tenant


class QuestionReader(Protocol):
    """Reads questions to tenants with a chunker that reads facts.

    A system names it in `System.question_readers`, by the name of that chunker.
    """

    def topic(self, query: str) -> str:
        """Return the words of a question to search for: without words that only say what for."""
        ...

    def consists_of_names(self, query: str) -> bool:
        """Return whether a question consists of names that some text must contain."""
        ...

    async def complete(
        self, services: SearchServices, progress: SearchProgress, answer: SearchAnswer
    ) -> SearchAnswer:
        """Return the answer with what the facts add to it, such as a warning or a question."""
        ...


def question_reader_of(tenant: Tenant) -> QuestionReader | None:
    """Return the reader of questions to a tenant; None if its questions are only searched for."""
    readers = _readers(installed_systems()) if tenant.reads_facts else {}
    return next((readers[name] for name in tenant.fact_readers if name in readers), None)


@lru_cache(maxsize=4)
def _readers(systems: Systems) -> Mapping[str, QuestionReader]:
    return systems.load("question_readers")
