"""Questions about source code: report unknown names, and ask the user to clarify a question.

A name in the form of a symbol is known if a definition or a file has this name, or if every part of
it occurs in the text of a readable document. Ordinary words are never reported as unknown. If no
passage is near enough to a question, the user is asked whether one of the nearest names is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import partial
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.search.model import Clarification, SearchAnswer, SearchRequest, UnmatchedFilter
from rag_assets.search.progress import Ranking, SearchProgress
from rag_assets.search.recall import VerifyStep, add_scopes
from rag_assets.search.services import SearchServices
from rag_assets.storage.index.model import EntryFilter, RankingRequest
from rag_assets.storage.index.terms import parse_query_words
from rag_assets.systems.code_memory.derived.model import ROUTE
from rag_assets.systems.code_memory.retrieval.question_subject import (
    find_question_kinds,
    find_question_names,
)
from rag_assets.systems.code_memory.retrieval.steps.walk import RelationViews
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.symbols.names import TABLE, split_name

_WORD: Final = re.compile(r"[a-z]{4,40}|[A-Z][a-z]{2,40}|[A-Z]{3,40}")
_MAX_WORDS: Final = 12
_BEGINNINGS: Final = (12, 8, 6)
_BEGINNING, _FEW, _FEWEST = 6, 4, 3
_MAX_NAME_CHARACTERS: Final = 100
_REMOVED_CHARACTERS: Final = re.compile(r"[^A-Za-z_/{}]+")
"""Characters that are removed before names are compared, also digits: they are rarely misspelt."""
_MAX_COMPARED_NAMES: Final = 500
_MAX_SHOWN_NAMES: Final = 5
_CLARIFICATION_TEXT: Final = (
    "Nothing in this project that I may read is near this question. Which file, class, route or"
    " table is it about?"
)


def build_clarification(view: RelationView, query: str, *, first: str = "") -> Clarification:
    """Ask the user about definitions with similar names; the prefix `first` goes first."""
    names = find_nearest_names(view, query, first=first)
    if not names:
        return Clarification(_CLARIFICATION_TEXT)
    joined_names = ", ".join(names[:-1]) + (" or " if len(names) > 1 else "") + names[-1]
    question = f"Nothing in this project is near this question. Is it about {joined_names}?"
    return Clarification(question, tuple(names))


def find_nearest_names(view: RelationView, query: str, *, first: str = "") -> list[str]:
    """Return the names of definitions most similar to a question or a name, nearest first."""
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:_MAX_WORDS]
    whole = "" if len(query) > _MAX_NAME_CHARACTERS else _REMOVED_CHARACTERS.sub("", query).lower()
    is_name = bool(whole) and (
        bool(first) or not any(character.isspace() for character in query.strip())
    )
    like: list[str] = []
    for tried in _iter_search_attempts(words, whole if is_name else ""):
        like = [
            definition.name
            for stems in tried
            for definition in view.find_by_parts(stems, _MAX_COMPARED_NAMES)
        ]
        if preferred := [name for name in like if name.startswith(first)]:
            like = preferred
            break
    candidates = {short: short.lower() for short in map(_shorten_name, like)}
    compared_words = [whole] if is_name else words
    return sorted(
        candidates, key=lambda name: (-_rate_similarity(candidates[name], compared_words), name)
    )[:_MAX_SHOWN_NAMES]


def _iter_search_attempts(words: list[str], name: str) -> Iterator[list[list[str]]]:
    """Yield lists of parts of names to try in turn, until one of the lists finds a name."""
    if name:
        # A misspelt name usually starts like the intended one, at least for a few letters.
        yield [[name[:length]] for length in _BEGINNINGS if len(name) >= length]
    for length in (_BEGINNING, _FEW, _FEWEST):
        if words:
            yield [[word.removesuffix("s")[:length] for word in words]]
    if len(name) >= _FEWEST:
        yield [[name[at : at + _FEWEST] for at in range(len(name) - _FEWEST + 1)][:_MAX_WORDS]]


def _shorten_name(name: str) -> str:
    """Return the name of a definition without prefix or namespace."""
    for prefix in (ROUTE, TABLE):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name.rpartition("\\")[2]


def _rate_similarity(name: str, words: list[str]) -> float:
    """Return the similarity of a name to the most similar of several words, from 0 to 1."""
    bare = _REMOVED_CHARACTERS.sub("", name)
    return max(SequenceMatcher(None, word, bare).ratio() for word in words)


_SYMBOL: Final = re.compile(
    r"\w+(?:::|->|@|#|\\)\w[\w\\:@#>-]*|[A-Z]\w*\.\w+|_*[a-z]\w*[A-Z]\w*|_*[A-Z]\w*[a-z]\w*[A-Z]\w*"
    r"|\w+_\w+"
)
"""Matches names that do not occur in prose: qualified, in camel case, or in snake case."""
_MAX_NAMES: Final = 4
_MAX_READ_ENTRIES: Final = 10
"""Maximum entries read per part of a name; some may belong to documents the caller may not read."""
_TABLE_FIELD: Final = "table_name"
_NAME_FIELDS: Final = ("route_name", "controller_class", _TABLE_FIELD)
"""Fields of a request that contain a name."""


async def report_unknown_names(
    services: SearchServices, progress: SearchProgress, answer: SearchAnswer
) -> SearchAnswer:
    """Return an answer with a warning about each name that no readable file contains.

    All hits are removed if the question consists of such names, because matches by meaning would be
    guesses. They are also removed if `route_name`, `controller_class` or `table_name` is such a
    name. If the search found an exact match, the hits are kept.
    """
    view = await run_sync(RelationViews(services).get_view, progress)
    request = progress.search.request
    candidates = await run_sync(partial(_find_undefined_names, view, request))
    unknown = [
        (field, name)
        for field, name in candidates
        if not await _occurs_in_texts(services, progress, name)
    ]
    if not unknown:
        return answer
    nearest = await run_sync(lambda: [find_nearest_names(view, name) for _, name in unknown])
    problems = [
        _describe_problem(name, names) for (_, name), names in zip(unknown, nearest, strict=True)
    ]
    warnings = map(UnmatchedFilter, [field for field, _ in unknown], problems)
    answer = replace(answer, warnings=(*answer.warnings, *warnings))
    in_question = find_question_names(request.query)
    in_query = [field for field, _ in unknown if field == "query"]
    consists_of_unknown = in_question.is_bare and len(in_query) >= len(in_question.names)
    has_exact_match = progress.walk is not None and bool(progress.walk.leading)
    if has_exact_match or not (consists_of_unknown or len(in_query) < len(unknown)):
        return answer
    names = tuple(dict.fromkeys(name for similar in nearest for name in similar))
    asking = Clarification(" ".join(problems), names)
    return replace(answer, hits=(), omitted=0, needs_clarification=True, clarification=asking)


def _find_undefined_names(view: RelationView, request: SearchRequest) -> list[tuple[str, str]]:
    """Return the names in a request that no definition and no file has, each after its field."""
    names = [(field, value) for field in _NAME_FIELDS if (value := getattr(request, field))]
    in_query = find_question_names(request.query).names
    names += [("query", name) for name in in_query if _SYMBOL.fullmatch(name)]
    undefined: list[tuple[str, str]] = []
    for field, written in names[:_MAX_NAMES]:
        name = written if field == "query" else written.removeprefix(TABLE)
        stored = TABLE + name if field == _TABLE_FIELD else written
        if not (
            view.find_by_name(stored)
            or view.find_by_suffix(name)
            or view.find_files_by_suffix(name)
            or (field == _TABLE_FIELD and view.find_edges_of_names([stored], "in").edges)
        ):
            undefined.append((field, name))
    return undefined


async def _occurs_in_texts(services: SearchServices, progress: SearchProgress, name: str) -> bool:
    """Return whether every part of a name occurs in documents that the caller may read."""
    parts = [part for part in split_name(name, folded=False) if part]
    if not parts:
        return False
    if progress.scopes is None:
        progress = await add_scopes(progress, services)
    readable = EntryFilter(scopes=progress.scopes, moved=progress.moved)
    rankings = await services.searcher.rankings(
        progress.serving.index_name,
        progress.owner,
        [RankingRequest(part, _MAX_READ_ENTRIES, readable) for part in parts],
    )
    wanted = [Ranking("words", ranking) for ranking in rankings]
    confirmed = await VerifyStep(services).confirm(progress, wanted)
    terms = [len(parse_query_words(part).terms) for part in parts]
    return all(
        any(candidate.matched >= count for candidate in ranking.candidates)
        for count, ranking in zip(terms, confirmed.rankings, strict=True)
    )


def _describe_problem(name: str, nearest: Sequence[str]) -> str:
    problem = f"no file that you may read has {name!r}"
    return f"{problem}. Nearest names: {', '.join(nearest)}" if nearest else problem


class CodeQuestions:
    """Reads questions about source code; see QuestionReader."""

    def topic(self, query: str) -> str:
        """Return the question without the words that ask for a kind of definition."""
        return find_question_kinds(query).topic

    def consists_of_names(self, query: str) -> bool:
        """Return whether a question consists only of names in the form of identifiers."""
        question_names = find_question_names(query)
        return question_names.is_bare and question_names.is_relational

    async def complete(
        self, services: SearchServices, progress: SearchProgress, answer: SearchAnswer
    ) -> SearchAnswer:
        """Return an answer that reports unknown names and asks for clarification if needed."""
        answer = await report_unknown_names(services, progress, answer)
        if not answer.needs_clarification or answer.clarification is not None:
            return answer
        view = await run_sync(RelationViews(services).get_view, progress)
        asking = await run_sync(partial(build_clarification, view, progress.search.request.query))
        return replace(answer, clarification=asking)


QUESTIONS = CodeQuestions()
