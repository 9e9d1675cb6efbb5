"""Variants of code memory's retrieval: complete, with each step off, and the searches within it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.code_questions.questions import DEPTH, FoundPassage, Question
from benchmarks.measure import CLI
from benchmarks.servers import Servers, write_tenants_file
from rag_assets.cli.session import Session
from rag_assets.ingest.sources.model import parse_path
from rag_assets.search import AsyncRetriever
from rag_assets.search.model import Hit, SearchRequest
from rag_assets.search.plan import DEFAULT_STEPS, StepLists, load_installed_steps
from rag_assets.systems.code_memory.retrieval.question_subject import QuestionKinds
from rag_assets.systems.code_memory.symbols.source_types import SOURCE_TYPES

TENANT: Final = "koel"
_PROFILE: Final = "code-memory"
_DERIVED: Final = ("route", "table")


@dataclass(frozen=True, slots=True)
class Variant:
    """A configuration of the search.

    Attributes:
        name: label in tables.
        omitted_steps: steps that are left out.
        request: fields of the request.
        patches: values to patch in retrieval modules, by module and name.
    """

    name: str
    omitted_steps: tuple[str, ...] = ()
    request: Mapping[str, Any] = field(default_factory=dict)
    patches: Mapping[str, Any] = field(default_factory=dict)


_PLAIN: Final = tuple(
    name for name in load_installed_steps().profiles[_PROFILE] if name not in DEFAULT_STEPS
)
_ARRANGING: Final = "rag_assets.systems.code_memory.retrieval.steps.expand"


def _classify_nothing(query: str) -> QuestionKinds:
    """Return the kinds of a question that asks for no kind and is all topic."""
    return QuestionKinds(frozenset(), is_about_tests=False, topic=query)


_WORDS: Final = {
    "rag_assets.systems.code_memory.retrieval.questions.find_question_kinds": _classify_nothing
}

VARIANTS: Final = (
    Variant("code memory"),
    Variant("words alone (BM25)", _PLAIN, {"mode": "text"}, _WORDS),
    Variant("vectors alone (kNN)", _PLAIN, {"mode": "knn"}, _WORDS),
    Variant("hybrid, as other profiles", _PLAIN, patches=_WORDS),
    Variant("without the walk from names", ("walk",)),
    Variant("without the walk from best candidates", ("expand",)),
    Variant("without what relations bring", patches={f"{_ARRANGING}._GAIN_WEIGHT": 0.0}),
    Variant("without the topic in words", patches=_WORDS),
    Variant(
        "without kinds asked for", patches={f"{_ARRANGING}.find_question_kinds": _classify_nothing}
    ),
    Variant(
        "without room for each",
        patches={
            f"{_ARRANGING}._SAME_FILE_FACTOR": 1.0,
            f"{_ARRANGING}._FIRST_OF_TYPE_FACTOR": 1.0,
        },
    ),
    Variant("with tests as good as code", patches={f"{_ARRANGING}._TEST_FACTOR": 1.0}),
    Variant(
        "without derived documents",
        request={"source_types": tuple(t for t in SOURCE_TYPES if t not in _DERIVED)},
    ),
)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a variant.

    Attributes:
        passages: passages by question.
        milliseconds: median of the questions.
    """

    passages: Mapping[str, Sequence[FoundPassage]]
    milliseconds: float


@contextmanager
def open_indexed(servers: Servers, home: Path, root: Path, *, fresh: bool) -> Iterator[Session]:
    """Yield a session of an installation whose one tenant is the repository at `root`.

    Args:
        home: folder of the installation.
        root: the repository.
        fresh: whether to discard the home folder and the database of a former run.
    """
    if fresh:
        shutil.rmtree(home, ignore_errors=True)  # it belongs to the discarded database
    home.mkdir(parents=True, exist_ok=True)
    tenant = {
        "id": TENANT,
        "profile": _PROFILE,
        "organization": "benchmark",
        "project": TENANT,
        "embedder": {"provider": "local"},
        "sources": [{"name": "repo", "type": "git", "root": str(root), "ref": "HEAD"}],
    }
    write_tenants_file(home, [tenant])
    name = "code_questions"
    os.environ |= {
        "RAG_ASSETS_HOME": str(home),
        "RAG_ASSETS_DATABASE_URL": servers.create_database(name)
        if fresh
        else servers.get_database_url(name),
        "RAG_ASSETS_ELASTICSEARCH_URL": servers.elasticsearch_url,
    }
    command = [*CLI, "sync", TENANT]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with Session() as session:
        yield session


def ask_all(session: Session, variant: Variant, questions: Sequence[Question]) -> Answers:
    """Ask all questions with one variant."""
    with _patch(variant.patches):
        return asyncio.run(_ask_all(session, variant, questions))


async def _ask_all(session: Session, variant: Variant, questions: Sequence[Question]) -> Answers:
    steps = build_steps(variant)
    stores = (session.catalog, session.store, session.embedders)
    retriever = AsyncRetriever(*stores, steps=steps, is_journaled=False)
    passages: dict[str, list[FoundPassage]] = {}
    spent: list[float] = []
    try:
        for question in questions:
            request = SearchRequest(query=question.question, top_k=DEPTH, **variant.request)
            started = time.perf_counter()
            answer = await retriever.search(TENANT, request)
            spent.append(1_000 * (time.perf_counter() - started))
            passages[question.id] = [_to_passage(hit) for hit in answer.hits]
    finally:
        await retriever.close()
    return Answers(passages, round(sorted(spent)[len(spent) // 2], 1))


def build_steps(variant: Variant) -> StepLists:
    """Return the steps of code memory without those that a variant leaves out."""
    installed = load_installed_steps()
    names = [one for one in installed.profiles[_PROFILE] if one not in variant.omitted_steps]
    return StepLists(installed.added, {_PROFILE: names})


def _to_passage(hit: Hit) -> FoundPassage:
    symbol = hit.symbol or ""
    lines = hit.line_start or 0, hit.line_end or 0
    path = "" if symbol.startswith(("route:", "table:")) else parse_path(hit.uri)
    return FoundPassage(path, *lines, symbol, hit.text)


@contextmanager
def _patch(values: Mapping[str, Any]) -> Iterator[None]:
    before = {}
    for path, value in values.items():
        module, _, name = path.rpartition(".")
        before[path] = getattr(import_module(module), name)
        setattr(import_module(module), name, value)
    try:
        yield
    finally:
        for path, value in before.items():
            module, _, name = path.rpartition(".")
            setattr(import_module(module), name, value)
