"""Retrieval: questions → passages that the caller may read.

Belongs here: search, fusion, verification against the catalog, and the model of a hit. Does not
belong here: building the index (pipeline) and interfaces such as HTTP or the command line.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_assets.search.retriever import AsyncRetriever, Retriever

__all__ = ["AsyncRetriever", "Retriever"]


def __getattr__(name: str) -> object:
    """Import a retriever when it is first used, so that importing the models loads no client."""
    if name == "AsyncRetriever":
        from rag_assets.search.retriever import AsyncRetriever

        return AsyncRetriever
    if name == "Retriever":
        from rag_assets.search.retriever import Retriever

        return Retriever
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
