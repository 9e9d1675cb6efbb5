"""Measure a workspace's rankings, the blocks that its chips lead to, and a change of its model.

    python -m benchmarks.workspace_questions                        some four minutes
    python -m benchmarks.workspace_questions --half tuned --show    while something is improved

examples/workspace is pushed into two workspaces, one of which has no chunks of blocks, and searched
by its people with the shipped model. extractive_writer.py writes the answers. Then one workspace
changes its model, as an application does it: to multilingual-e5-small, served as Ollama does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from benchmarks.extractive_writer import Writer, extractive_writer
from benchmarks.measure import PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import benchmark_servers
from benchmarks.workspace_questions.measures import (
    HALVES,
    compute_ndcg,
    estimate_halves,
    holds_answer,
    is_found,
)
from benchmarks.workspace_questions.site import (
    Site,
    make_installation,
    open_site,
    serve_e5,
    start_sync,
)
from examples.workspace.data import Question, people, questions, rows
from examples.workspace.loading import load as push
from rag_assets.client import Question as Asked
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.providers.local import get_shipped_model
from rag_assets.quality.measures import DEPTH, estimate_difference
from rag_assets.search.answerer import CitedHit, build_citation, compare_meanings
from rag_assets.search.answers import AnswerResult
from rag_assets.search.hits import list_block_parts
from rag_assets.search.model import Hit
from rag_assets.tenants.modes import SearchMode

WORK: Final = PROJECT / ".local" / "benchmark-workspace"
BLOCKS, PAGES = "osterby", "osterby-pages"
"""The default workspace, and one whose long pages have no chunks of blocks."""
MODES: Final[tuple[SearchMode, ...]] = ("hybrid", "knn", "text")
_PAGES_ALONE: Final = {"chunker": "heading", "max_tokens": 1_200, "overlap": 150}
_SYNCS: Final = 5
"""Attempts: a served model may time out on a busy machine; the next sync resumes."""
_PAUSE: Final = 0.5
_E5: Final = "multilingual-e5-small"
_E5_DIMENSIONS: Final = 384

Hits = Mapping[str, Sequence[Hit]]
"""Hits by question id."""


def main() -> None:
    """Measure and save the result."""
    options = _parse_options()
    chosen = [question for question in questions() if question.half in HALVES[options.half]]
    before = describe_machine()
    with (
        benchmark_servers(options.work) as servers,
        extractive_writer(OnnxEmbedder()) as writer,
    ):
        common: dict[str, Any] = {
            "embedder": {"provider": "local"},
            "chat_model": {
                "model": "extractive",
                "provider": "openai-compatible",
                "base_url": writer.url,
            },
        }
        tenants = {BLOCKS: common, PAGES: {**common, "chunker": _PAGES_ALONE}}
        make_installation(servers, options.work / "home", tenants)
        with open_site(options.work / "service.log") as site:
            for tenant in tenants:
                with site.client(tenant) as admin:
                    outcomes = push(admin)
                print(tenant, dict(outcomes))
                _require(start_sync(tenant).wait() == 0, "the sync failed")
            measured = {
                "rankings": measure_rankings(site, chosen),
                "chips": measure_chips(site, chosen, writer, show=options.show),
                "another model": measure_model_change(site, chosen),
            }
    print(json.dumps(measured, indent=1))
    if options.half != "all":
        return
    figures = {
        "rounds": 1,
        "records": dict(Counter(row["type"] for row in rows("records"))),
        "questions": len(chosen),
        **measured,
    }
    report_result(options.name, "workspace-questions", before, figures)


def measure_rankings(site: Site, questions: Sequence[Question]) -> dict[str, Any]:
    """Return nDCG@10 of each mode, with chunks of blocks and without."""
    values = {
        f"{name}, {mode}": compute_ndcg(
            questions, search_all(site, tenant, questions, mode=mode, top_k=DEPTH)
        )
        for name, tenant in (("pages with blocks", BLOCKS), ("pages alone", PAGES))
        for mode in MODES
    }
    gain = estimate_difference(values["pages with blocks, hybrid"], values["pages alone, hybrid"])
    means = {
        name: {half: asdict(one) for half, one in estimate_halves(questions, of).items()}
        for name, of in values.items()
    }
    return {NDCG_NAME: means, "blocks against pages alone, hybrid": asdict(gain)}


NDCG_NAME: Final = f"nDCG@{DEPTH}"


def search_all(site: Site, tenant: str, questions: Sequence[Question], **request: Any) -> Hits:
    """Return the hits that each asker gets, by question id."""
    hits = {}
    for question in questions:
        with site.client(tenant, people()[question.asker]) as client:
            answer = client.query(Asked(query=question.question, **request))
        _require(not answer.degraded, f"{question.id} was answered without {answer.degraded}")
        hits[question.id] = answer.hits
    return hits


def measure_chips(
    site: Site, questions: Sequence[Question], writer: Writer, *, show: bool
) -> dict[str, Any]:
    """Return how often citations and hits lead to the block that holds the answer."""
    hits = search_all(site, BLOCKS, questions)
    nearest = _ask_all(site, questions)
    writer.required_words = {question.question: question.answer for question in questions}
    exact = _ask_all(site, questions)
    writer.required_words = {}
    outcomes = {
        question.id: _judge(question, hits[question.id], exact[question.id], nearest[question.id])
        for question in questions
    }
    if show:
        for question in questions:
            print(
                f"{question.id} {question.question} → {question.record}#{question.block_id}"
                f" {outcomes[question.id]}"
            )
            for citation in exact[question.id].citations:
                print(f"     exact   {citation.source_id}#{citation.block_id}")
            for hit in hits[question.id][:4]:
                print(f"     hit     {hit.source_id}#{hit.block_id} {hit.source_type} {hit.score}")
    return {
        half: _count_outcomes(
            [outcomes[question.id] for question in questions if question.half in of]
        )
        for half, of in HALVES.items()
    }


def _ask_all(site: Site, questions: Sequence[Question]) -> dict[str, AnswerResult]:
    answers = {}
    for question in questions:
        with site.client(BLOCKS, people()[question.asker]) as client:
            answers[question.id] = client.answer(question.question)
    return answers


def _judge(
    question: Question, hits: Sequence[Hit], exact: AnswerResult, nearest: AnswerResult
) -> dict[str, bool | None]:
    """Return the correct outcomes of one question; None where there is nothing to judge."""
    first = next((hit for hit in hits if is_found(question, [hit])), None)
    return {
        "found": first is not None,
        "hit": None if first is None else holds_answer(question, first),
        "cited": _is_cited(question, exact),
        "claim, words": None if first is None else _is_claimed(question, first),
        "claim, meaning": None
        if first is None
        else _is_claimed(question, first, get_shipped_model),
        "cited by the nearest sentence": _is_cited(question, nearest),
    }


def _is_cited(question: Question, answer: AnswerResult) -> bool | None:
    """Return whether the first citation leads to the answer; None if there is no citation."""
    return holds_answer(question, answer.citations[0]) if answer.citations else None


def _is_claimed(question: Question, hit: Hit, model: Callable[[], Embedder] | None = None) -> bool:
    """Return whether the citation of a claim, here the question, leads to the answer.

    Args:
        question: the claim.
        hit: the passage that it cites.
        model: compares meanings; None compares words alone.
    """
    parts = list_block_parts(hit.text, question.question, hit.blocks, offset=hit.start)
    cited = CitedHit(hit, question.question, parts)
    near = {} if model is None else asyncio.run(compare_meanings([cited], model))
    return holds_answer(question, build_citation(cited, near.get(hit.number)))


def _count_outcomes(outcomes: Sequence[Mapping[str, bool | None]]) -> dict[str, Any]:
    names = outcomes[0] if outcomes else ()
    judged = {
        name: [outcome[name] for outcome in outcomes if outcome[name] is not None] for name in names
    }
    return {name: {"right": sum(map(bool, of)), "of": len(of)} for name, of in judged.items()}


def measure_model_change(site: Site, questions: Sequence[Question]) -> dict[str, Any]:
    """Return nDCG@10 before, during and after a change of the model; searches must not fail."""
    before = compute_ndcg(questions, search_all(site, BLOCKS, questions, top_k=DEPTH))
    with serve_e5() as url, site.client(BLOCKS) as admin:
        model = {"provider": "ollama", "embedding_model": _E5, "base_url": url}
        waiting = admin.change_workspace_settings({**model, "dimensions": _E5_DIMENSIONS})
        _require(waiting.pending_model is not None, "the new model is not pending")
        pending = compute_ndcg(questions, search_all(site, BLOCKS, questions, top_k=DEPTH))
        admin.reindex()
        questions_meanwhile = 0
        for _ in range(_SYNCS):
            run = start_sync(BLOCKS)
            while run.poll() is None:
                question = questions[questions_meanwhile % len(questions)]
                hits = search_all(site, BLOCKS, [question], top_k=DEPTH)
                _require(
                    bool(hits[question.id]), f"{question.id} found nothing while the model changed"
                )
                questions_meanwhile += 1
                time.sleep(_PAUSE)
            if run.returncode == 0:
                break
        _require(run.returncode == 0, "the sync failed")
        after = compute_ndcg(questions, search_all(site, BLOCKS, questions, top_k=DEPTH))
    named = {"all-MiniLM-L6-v2": before, "while the other waits": pending, _E5: after}
    return {
        NDCG_NAME: {
            name: asdict(estimate_halves(questions, of)["all"]) for name, of in named.items()
        },
        "questions meanwhile": questions_meanwhile,
    }


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(message)


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__, name="workspace-questions", work=WORK)
    parser.add_argument(
        "--half", choices=[*HALVES], default="all", help="half of the questions to ask"
    )
    parser.add_argument("--show", action="store_true", help="print citations and hits")
    return parser.parse_args()


if __name__ == "__main__":
    main()
