"""Join: find all documents that contain the text of a hit, in tenants that read source code.

Copies of a file in many places become one hit that names them all. Rankings alone do not suffice,
because a ranking is limited: of a text in a hundred places, it may contain only two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from rag_assets.search.duplicates import Passage
from rag_assets.search.search_progress import Ranking, SearchProgress, Verified
from rag_assets.search.steps.protocol import SearchServices
from rag_assets.search.steps.read import equal_texts
from rag_assets.search.steps.verify import Verify
from rag_assets.storage.index.model import Candidate

_MOST_ATTEMPTS: Final = 3


class Join:
    """Adds to each passage the other documents that contain its text.

    The index returned the entries of these documents when the texts were read. The catalog is
    queried only if there are any.

    Args:
        services: search the index and read the catalog.
    """

    def __init__(self, services: SearchServices) -> None:
        self._searcher = services.searcher
        self._verify = Verify(services)

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add the other documents that the caller may read, without changing any order."""
        progress = replace(progress, joined=True)
        others = _others(progress, progress.equal)
        for attempt in range(_MOST_ATTEMPTS):
            if not others:
                return progress
            with progress.timings.part("verify"):
                found = await self._verify.confirmed(progress, [Ranking("other", others, weight=0)])
            if attempt + 1 == _MOST_ATTEMPTS or not _are_replaced(others, found):
                break
            # If a document was replaced since the texts were read, its new version may also contain
            # the text.
            texts = [passage.candidate.text_key for passage in progress.passages]
            others = _others(progress, await equal_texts(self._searcher, progress, texts))
        return _join_documents(progress, found)


def _others(progress: SearchProgress, equal: Sequence[Candidate]) -> list[Candidate]:
    known = progress.confirmed.by_id.keys() | progress.excluded | progress.altered
    return [one for one in equal if one.id not in known]


def _are_replaced(others: Sequence[Candidate], found: Verified) -> bool:
    """Return whether only outdated versions of a readable document were found."""
    confirmed = {one.document_id for one in found.by_id.values()}
    return any(
        one.document_id in found.versions and one.document_id not in confirmed for one in others
    )


def _join_documents(progress: SearchProgress, found: Verified) -> SearchProgress:
    of_text: dict[str, list[str]] = {}
    for one in found.by_id.values():
        if one.uri:
            of_text.setdefault(one.text_key, []).append(one.uri)
    verified = progress.confirmed
    return replace(
        progress,
        passages=[_with_documents(passage, of_text) for passage in progress.passages],
        verified=replace(
            verified,
            rankings=[*verified.rankings, *found.rankings],
            versions={**verified.versions, **found.versions},
            recalled=verified.recalled + found.recalled,
        ),
    )


def _with_documents(passage: Passage, of_text: Mapping[str, Sequence[str]]) -> Passage:
    more = of_text.get(passage.candidate.text_key, ())
    uris = dict.fromkeys((*passage.also, *more))
    uris.pop(passage.candidate.uri, None)
    return replace(passage, also=tuple(uris))
