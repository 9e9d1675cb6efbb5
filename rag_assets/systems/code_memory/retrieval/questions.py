"""Questions about source code: what they ask for, and answers about names that do not exist."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from anyio.to_thread import run_sync

from rag_assets.search.model import SearchAnswer
from rag_assets.search.progress import SearchProgress
from rag_assets.search.services import SearchServices
from rag_assets.systems.code_memory.retrieval.asked_kinds import asked_kinds
from rag_assets.systems.code_memory.retrieval.asked_names import asked_names
from rag_assets.systems.code_memory.retrieval.clarification import clarification_of
from rag_assets.systems.code_memory.retrieval.steps.views import Views
from rag_assets.systems.code_memory.retrieval.unknown_names import report_unknown_names


class CodeQuestions:
    """Reads questions about source code; see QuestionReader."""

    def topic(self, query: str) -> str:
        """Return the question without the words that ask for a kind of definition."""
        return asked_kinds(query).topic

    def consists_of_names(self, query: str) -> bool:
        """Return whether a question consists only of names in the form of identifiers."""
        asked = asked_names(query)
        return asked.is_bare and asked.relational

    async def complete(
        self, services: SearchServices, progress: SearchProgress, answer: SearchAnswer
    ) -> SearchAnswer:
        """Return an answer that reports unknown names and asks for clarification if needed."""
        answer = await report_unknown_names(services, progress, answer)
        if not answer.needs_clarification or answer.clarification is not None:
            return answer
        view = await run_sync(Views(services).view, progress)
        asking = await run_sync(partial(clarification_of, view, progress.search.request.query))
        return replace(answer, clarification=asking)


QUESTIONS = CodeQuestions()
