"""The search step `quote`: put passages that contain the whole question first.

Agents search for the text of an error, a configuration key or a line of code. Rankings by vectors
or by single words do not distinguish the passage with that text from similar passages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rag_assets.ingest.sources.model import parse_path
from rag_assets.search.progress import SearchProgress, WalkResult
from rag_assets.search.services import SearchServices, TrustedStep
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.retrieval.question_subject import build_quotation
from rag_assets.systems.code_memory.symbols.source_types import get_type_of_path, is_test

_MAX_COMPARED_PASSAGES: Final = 20
"""Number of passages, the best of the word search, that are compared with the question."""


class QuoteStep(TrustedStep):
    """Puts passages that contain the whole question first, after definitions that it names.

    Args:
        services: reads the texts of candidates.
    """

    after = ("verify",)
    before = ("fuse",)

    def __init__(self, services: SearchServices) -> None:
        self._services = services

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add the passages that contain the question to the leading candidates.

        Only verified candidates are compared, so that the limit counts no passage that the caller
        may not read.
        """
        quotation = build_quotation(progress.search.request.query)
        if quotation is None or not reads_code(progress.search.tenant):
            return progress
        uris = {
            candidate.id: candidate.uri
            for ranking in progress.confirmed.rankings
            for candidate in ranking.candidates
            if ranking.kind == "words"
        }
        ids = [*uris][:_MAX_COMPARED_PASSAGES]
        if not ids:
            return progress
        with progress.timings.measure("walk"):
            entries = await self._services.searcher.entries(
                progress.serving.index_name,
                progress.owner,
                ids,
                progress.scopes,
                moved=progress.moved,
            )
        texts = {id_: str(entries[id_].fields.get("text")) for id_ in ids if id_ in entries}
        quoting = [id_ for id_, text in texts.items() if quotation.search(text)]
        if not quoting:
            return progress
        quoting.sort(key=lambda id_: _is_secondary(parse_path(uris[id_])))
        walked = progress.walk or WalkResult(frozenset(), ())
        return replace(progress, walk=replace(walked, leading=(*walked.leading, *quoting)))


def _is_secondary(path: str) -> bool:
    """Return whether a file is a test or a document; its passages come after passages of code."""
    return is_test(path) or get_type_of_path(path) in {"doc", "readme"}
