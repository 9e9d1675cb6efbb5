"""The endpoint for answers: sentences of the tenant's chat model with citations."""

from __future__ import annotations

from fastapi import APIRouter, Request

from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.api.identity import Identity
from rag_assets.api.model import QueryRequest
from rag_assets.api.problems import documented
from rag_assets.search.answers import AnswerLength, AnswerRequest, AnswerResult, ContextBudget

_PROBLEMS = documented(400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504)

answers = APIRouter(prefix="/rag", tags=["knowledge"], responses=_PROBLEMS, route_class=Guarded)


class AnswerQuestion(QueryRequest):
    """A question to answer in sentences, on behalf of the token's subject.

    Attributes:
        token_budget: maximum tokens of the passages that the model gets, 4,000 by default.
        max_tokens: maximum tokens that the model may write, including hidden reasoning.
    """

    token_budget: ContextBudget | None = None
    max_tokens: AnswerLength | None = None

    def answer_for(self, identity: Identity) -> AnswerRequest:
        """Return the internal request, with the principals of the token."""
        search = self.search_for(identity)
        given = {name: getattr(search, name) for name in type(search).model_fields}
        return AnswerRequest(**given, max_tokens=self.max_tokens)


@answers.post("/answer")
async def answer(
    request: Request, body: AnswerQuestion, identity: IdentityDependency, backend: BackendDependency
) -> AnswerResult:
    """Answer a question with the tenant's chat model, from the tenant's knowledge.

    Sentences that cite no passage are removed. If no sentence is left, or no passage was found, the
    answer is empty, with `needs_clarification` and the `reason`.
    """
    tenant = request.state.tenant = identity.tenant(body.tenant)
    return await backend.answerer.answer(tenant, body.answer_for(identity))
