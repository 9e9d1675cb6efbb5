"""Question readers: how a system interprets questions about texts that its chunker has read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

from rag_assets.plugins.registry import Systems, installed_systems
from rag_assets.search.model import SearchAnswer
from rag_assets.search.search_progress import SearchProgress
from rag_assets.search.steps.protocol import SearchServices
from rag_assets.tenants.model import Tenant


class QuestionReader(Protocol):
    """Interprets questions to tenants whose chunker reads facts.

    A system names its question readers in `System.question_readers`, by the name of the chunker.
    """

    def topic(self, query: str) -> str:
        """Return the words of a question to search for, without those that only state a purpose."""
        ...

    def consists_of_names(self, query: str) -> bool:
        """Return whether a question consists only of names that some text must contain."""
        ...

    async def complete(
        self, services: SearchServices, progress: SearchProgress, answer: SearchAnswer
    ) -> SearchAnswer:
        """Return the answer, completed with what the facts add, such as a warning or a question."""
        ...


def question_reader_of(tenant: Tenant) -> QuestionReader | None:
    """Return the reader of questions to a tenant; None if no reader interprets its questions."""
    readers = _readers(installed_systems()) if tenant.reads_facts else {}
    return next((readers[name] for name in tenant.fact_readers if name in readers), None)


@lru_cache(maxsize=4)
def _readers(systems: Systems) -> Mapping[str, QuestionReader]:
    return systems.load("question_readers")
