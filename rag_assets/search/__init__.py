"""Search: find passages that the caller may read, and write answers that cite them.

Belongs here: recall, verification against the catalog, fusion, scores, hits, citations, answers.
Does not belong here: building the index (pipeline) and interfaces such as HTTP or the command line.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_assets.search.retriever import AsyncRetriever, Retriever

__all__ = ["AsyncRetriever", "Retriever"]


def __getattr__(name: str) -> object:
    """Import a retriever on first access.

    Code that imports only the request models then loads no client of a server.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rag_assets.search import retriever

    return getattr(retriever, name)
