"""Names in a question that no readable file contains, and the nearest existing names.

A name in the form of a symbol is known if a definition or a file has this name. It is also known if
every part of it occurs in the text of a readable document. Ordinary words are never reported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.search.model import Clarification, SearchAnswer, SearchRequest, UnmatchedFilter
from rag_assets.search.progress import Ranking, SearchProgress
from rag_assets.search.recall import Verify, with_scopes
from rag_assets.search.services import SearchServices
from rag_assets.storage.index.model import EntryFilter, RankingRequest
from rag_assets.storage.index.query_words import words_of
from rag_assets.systems.code_memory.retrieval.asked_names import asked_names
from rag_assets.systems.code_memory.retrieval.clarification import nearest_names
from rag_assets.systems.code_memory.retrieval.steps.views import Views
from rag_assets.systems.code_memory.retrieval.view import View
from rag_assets.systems.code_memory.symbols.names import TABLE, name_parts

_SYMBOL: Final = re.compile(
    r"\w+(?:::|->|@|#|\\)\w[\w\\:@#>-]*|[A-Z]\w*\.\w+|_*[a-z]\w*[A-Z]\w*|_*[A-Z]\w*[a-z]\w*[A-Z]\w*"
    r"|\w+_\w+"
)
"""Matches names that nobody uses in prose: qualified, in camel case, or in snake case."""
_MOST_NAMES: Final = 4
_LOOKED_AT: Final = 10
"""Maximum entries read per part of a name; the first ones may belong to unreadable documents."""
_GIVEN: Final = ("route_name", "controller_class", "table_name")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A name that a request mentions.

    Attributes:
        field: the field of the request that contains it.
        name: the name as written.
        lookup: the name as relations store it.
    """

    field: str
    name: str
    lookup: str


async def report_unknown_names(
    services: SearchServices, progress: SearchProgress, answer: SearchAnswer
) -> SearchAnswer:
    """Add warnings about names in the question that no readable file contains to an answer.

    A question that consists of such names gets no hits, because matches by meaning would be
    guesses. The same applies if a given route, controller or table occurs in no text.
    """
    view = await run_sync(Views(services).view, progress)
    request = progress.search.request
    candidates = await run_sync(partial(_find_undefined_names, view, request))
    unknown = [one for one in candidates if not await _occurs_in_texts(services, progress, one)]
    if not unknown:
        return answer
    nearest = await run_sync(lambda: [nearest_names(view, one.name) for one in unknown])
    problems = [
        _describe_problem(one.name, names) for one, names in zip(unknown, nearest, strict=True)
    ]
    found = tuple(map(UnmatchedFilter, [one.field for one in unknown], problems))
    answer = replace(answer, warnings=(*answer.warnings, *found))
    asked = asked_names(request.query)
    in_query = [one for one in unknown if one.field == "query"]
    consists_of_unknown = asked.is_bare and len(in_query) >= len(asked.names)
    is_named = progress.walked is not None and bool(progress.walked.leading)
    if is_named or not (consists_of_unknown or len(in_query) < len(unknown)):
        return answer
    names = tuple(dict.fromkeys(name for of_one in nearest for name in of_one))
    asking = Clarification(" ".join(problems), names)
    return replace(answer, hits=(), omitted=0, needs_clarification=True, clarification=asking)


def _find_undefined_names(view: View, request: SearchRequest) -> list[_Asked]:
    """Return the names of a request that no definition and no file has."""
    asked: list[_Asked] = []
    for field in _GIVEN:
        name = getattr(request, field)
        if name:
            plain = name.removeprefix(TABLE)
            asked.append(_Asked(field, plain, TABLE + plain if field == _GIVEN[2] else name))
    names = asked_names(request.query).names
    asked += [_Asked("query", one, one) for one in names if _SYMBOL.fullmatch(one)]
    return [one for one in asked[:_MOST_NAMES] if not _is_defined(view, one)]


def _is_defined(view: View, asked: _Asked) -> bool:
    if view.named(asked.lookup) or view.spelled(asked.name) or view.files_called(asked.name):
        return True
    return asked.field == _GIVEN[2] and bool(view.edges([asked.lookup], "in").edges)


async def _occurs_in_texts(
    services: SearchServices, progress: SearchProgress, asked: _Asked
) -> bool:
    """Return whether every part of a name occurs in documents that the caller may read."""
    parts = [part for part in name_parts(asked.name, folded=False) if part]
    if not parts:
        return False
    if progress.scopes is None:
        progress = await with_scopes(progress, services)
    readable = EntryFilter(scopes=progress.scopes, moved=progress.moved)
    rankings = await services.searcher.rankings(
        progress.serving.index_name,
        progress.owner,
        [RankingRequest(part, _LOOKED_AT, readable) for part in parts],
    )
    wanted = [Ranking("words", found) for found in rankings]
    confirmed = await Verify(services).confirmed(progress, wanted)
    return all(
        any(one.matched >= len(words_of(part).terms) for one in ranking.candidates)
        for part, ranking in zip(parts, confirmed.rankings, strict=True)
    )


def _describe_problem(name: str, nearest: Sequence[str]) -> str:
    said = f"no file that you may read has {name!r}"
    return f"{said}. Nearest names: {', '.join(nearest)}" if nearest else said
