"""Everything that can be asked of the service, each as the one request that asks it.

Every operation takes `tenant`, which may be left out if the token is for one only, or if the
client was given one.
"""

from __future__ import annotations

from typing import Any

from rag_assets.client.answers import Document, Documents, Health, Status
from rag_assets.client.calls import Call, Pages
from rag_assets.retrieval.model import Question, SearchAnswer

_PAGE = 100


def query(question: Question | str, *, tenant: str | None = None) -> Call[SearchAnswer]:
    """Search a tenant's knowledge.

    Args:
        question: in words; as a Question with filters, a threshold and whatever else it takes.
    """
    return Call("POST", "/rag/query", SearchAnswer, body=_asked(question, tenant))


def documents(
    *, after: str | None = None, limit: int = _PAGE, tenant: str | None = None
) -> Call[Documents]:
    """One page of the documents that may be read, by uri.

    Args:
        after: the `next` of the page before.
        limit: documents at most, up to 1,000.
    """
    asked = {"after": after, "limit": limit, "tenant": tenant}
    return Call("GET", "/rag/documents", Documents, parameters=asked)


def all_documents(*, page: int = _PAGE, tenant: str | None = None) -> Pages[Documents, Document]:
    """Every document that may be read, by uri.

    Args:
        page: how many are asked for at a time, when they are needed.
    """
    first = documents(limit=page, tenant=tenant)
    return Pages(first, lambda found: found.documents, lambda found: found.next)


def status(*, tenant: str | None = None) -> Call[Status]:
    """How far a tenant's index is behind its documents."""
    return Call("GET", "/rag/status", Status, parameters={"tenant": tenant})


def live() -> Call[Health]:
    """Whether the service answers at all."""
    return Call("GET", "/health/live", Health, tenanted=False)


def ready() -> Call[Health]:
    """Whether its servers answer, too; raises Unavailable if not."""
    return Call("GET", "/health/ready", Health, tenanted=False)


def metrics() -> Call[str]:
    """Figures for Prometheus, in its text format."""
    return Call("GET", "/metrics", str, tenanted=False)


def _asked(question: Question | str, tenant: str | None) -> dict[str, Any]:
    asked = Question(query=question) if isinstance(question, str) else question
    # What was not given is left to the tenant, and a former service need not know of it.
    body = asked.model_dump(mode="json", exclude_unset=True)
    return body if tenant is None else {**body, "tenant": tenant}
