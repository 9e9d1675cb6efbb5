"""Score: leave out passages below the cosine threshold, and calibrate that threshold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from rag_assets.search.calibration import FEWEST_SAMPLES, SAMPLES, floor_of, floor_of_question
from rag_assets.search.question_readers import question_reader_of
from rag_assets.search.search_progress import SearchProgress
from rag_assets.search.steps.protocol import SearchServices
from rag_assets.storage.index.common_words import is_certainly_english
from rag_assets.storage.index.model import Owner, entry_ids
from rag_assets.storage.index.query_words import words_of

_BELOW_ANY = -2.0
_MOST_OF_A_DOCUMENT = 200
"""Maximum number of passages of one document from which random passages are chosen."""
_LEAST_WORDS = 3
"""Minimum number of words in an English question that is nonsense because no text has any of
them."""


class Score:
    """Scores every text by its cosine if there is a threshold.

    Args:
        services: services that compute cosines in the index.
    """

    def __init__(self, services: SearchServices) -> None:
        self._searcher, self._reader = services.searcher, services.reader

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Keep the texts that are near enough; without a threshold all of them."""
        if progress.vector is not None and progress.search.floors is not None:
            progress = await self._calibrate_threshold(progress)
        threshold = progress.search.min_cosine
        if threshold is None and _is_nonsense(progress):
            return replace(progress, order=[])
        if progress.vector is None or threshold is None:
            return progress
        # Score all texts before the first ones are taken, since the threshold may drop any of them.
        missing = [
            distinct.id for distinct in progress.order if distinct.id not in progress.cosines
        ]
        with progress.timings.part("score"):
            scored = await self._searcher.cosines(
                progress.serving.index_name, progress.owner, progress.vector, missing
            )
        cosines = {**progress.cosines, **scored}
        named = progress.walked.ids if progress.walked is not None else frozenset()
        return replace(
            progress,
            cosines=cosines,
            unread=progress.unread | {d.id for d in progress.order if d.id not in cosines},
            order=[
                d
                for d in progress.order
                if d.id in named or cosines.get(d.id, _BELOW_ANY) >= threshold
            ],
        )

    async def _calibrate_threshold(self, progress: SearchProgress) -> SearchProgress:
        """Return a search whose threshold comes from random passages, if there are enough."""
        search, floor = progress.search, progress.floor
        assert progress.vector is not None and search.floors is not None  # noqa: S101, PT018
        if floor is None:
            with progress.timings.part("calibrate"):
                rows = await self._reader.random_versions(
                    progress.ref.id, progress.serving.number, limit=SAMPLES
                )
                ids = random_entries(progress.owner, rows)
                scored = await self._searcher.cosines(
                    progress.serving.index_name, progress.owner, progress.vector, ids
                )
            # Equal passages, such as the same lesson in many projects, count once.
            distinct = {round(cosine, 6) for cosine in scored.values()}
            if len(distinct) < FEWEST_SAMPLES:
                return progress
            floor = floor_of_question([*distinct])
        threshold = floor_of([*search.floors, floor])
        if search.min_cosine is not None:
            threshold = min(search.min_cosine, threshold)
        return replace(progress, floor=floor, search=replace(search, min_cosine=threshold))


def has_no_word(progress: SearchProgress) -> bool:
    """Return whether no readable text has a word of the question, in tenants that read facts."""
    search, query = progress.search, progress.search.request.query
    is_named = progress.walked is not None and bool(progress.walked.ids)
    is_asked = search.tenant.reads_facts and search.mode != "knn" and not is_named
    return is_asked and bool(words_of(query).terms) and not progress.word_scores


def _is_nonsense(progress: SearchProgress) -> bool:
    """Return whether a question is unrelated to all texts of a tenant that reads facts.

    Vectors rank texts for any question. Without a known cosine threshold, only words can show that
    no text is about it. They can do so for an identifier, or for several English words. Vectors
    alone decide about questions that are misspelt, or in other words or another language than the
    texts.
    """
    query = progress.search.request.query
    if not has_no_word(progress) or not query.isascii():
        return False
    reader = question_reader_of(progress.search.tenant)
    if reader is not None and reader.consists_of_names(query):
        return True
    return len(words_of(query).terms) >= _LEAST_WORDS and is_certainly_english(query)


def random_entries(owner: Owner, versions: Sequence[tuple[str, str, int]]) -> list[str]:
    """Return the ids of random entries, with equal chances for all passages of these documents.

    Args:
        owner: owner of the entries.
        versions: the id of each document, its indexed key, and its number of passages.
    """
    id_of = entry_ids(owner)
    places = [
        (document_id, key, ordinal)
        for document_id, key, count in versions
        for ordinal in range(min(count, _MOST_OF_A_DOCUMENT))
    ]
    chance = random.Random()  # noqa: S311 - a sample, no secret
    return [id_of(*place) for place in chance.sample(places, min(SAMPLES, len(places)))]
