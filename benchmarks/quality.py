"""Measure search quality on the judged questions in every mode, and the effect of thresholds.

    python -m benchmarks.quality                        some ten minutes, most of it reranking
    python -m benchmarks.quality --name trial           writes a file that git ignores
    python -m benchmarks.quality --reranker FOLDER      with a cross-encoder of your own
    python -m benchmarks.quality --pool                 shows and records what is not judged yet

The handbook and the annex are synced into real servers, once under each profile, with the shipped
model, and searched through the retriever that every interface uses. Without a cross-encoder,
searches are reranked by the stand-in of late_interaction.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.measure import CLI, PROJECT, create_parser, describe_machine, report_result
from benchmarks.quality_metrics import choose_harmless, choose_separating, measure_threshold
from benchmarks.servers import Servers, benchmark_servers
from examples.judge import HANDBOOK
from examples.judged.judgements import ANNEX, halves, judged_questions, save_pool
from rag_assets.cli.demo import INCLUDE, SETTINGS
from rag_assets.cli.session import Session
from rag_assets.common.formatting import format_count
from rag_assets.quality.judgements import JudgedQuestion, hash_passage
from rag_assets.quality.measures import (
    DEPTH,
    MEASURES,
    compute_judged_share,
    compute_measures,
    estimate_difference,
    estimate_mean,
)
from rag_assets.search import Retriever
from rag_assets.search.model import Hit, SearchRequest

WORK = PROJECT / ".local" / "benchmark-quality"
MODES: Mapping[str, Mapping[str, Any]] = {
    "text": {"mode": "text"},
    "knn": {"mode": "knn"},
    "hybrid": {"mode": "hybrid"},
    "hybrid, reranked": {"mode": "hybrid", "rerank": True},
}
COMPARED = (("hybrid", "text"), ("hybrid", "knn"), ("hybrid, reranked", "hybrid"))
PROFILES = ("documents", "workspace")
TOP_K = 5
"""Number of hits per answer when thresholds are judged."""
PATIENCE = 30
"""Timeout of a reranker in seconds: its order is measured here, not its speed."""
NO_THRESHOLD = -1.0
THRESHOLDS = (NO_THRESHOLD, *(hundredths / 100 for hundredths in range(10, 75, 5)))

Answers = Mapping[str, Sequence[Hit]]
"""Hits by question id."""


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="quality", work=WORK)
    parser.add_argument("--reranker", type=Path, help="folder of a cross-encoder as ONNX")
    parser.add_argument(
        "--pool", action="store_true", help="print and record passages without a judgement"
    )
    arguments = parser.parse_args()
    before = describe_machine()
    questions = judged_questions()
    answerable = [question for question in questions if question.answerable]
    reranker = (arguments.reranker or build_stand_in(arguments.work)).resolve()
    with (
        benchmark_servers(arguments.work) as servers,
        open_searcher(servers, arguments.work, reranker) as searcher,
    ):
        rankings = {
            name: searcher.search_all("documents", answerable, top_k=DEPTH, **mode)
            for name, mode in MODES.items()
        }
        if arguments.pool:
            record_pool(answerable, rankings)
            return
        curves = {
            profile: {
                min_score: searcher.search_all(profile, questions, top_k=TOP_K, min_score=min_score)
                for min_score in THRESHOLDS
            }
            for profile in PROFILES
        }
        corpus = searcher.count_corpus()
    figures = {
        "rounds": 1,
        "reranker": arguments.reranker.name if arguments.reranker else None,
        "corpus": corpus,
        **compare_modes(answerable, rankings),
        "thresholds": {name: calibrate(questions, curve) for name, curve in curves.items()},
    }
    report_result(arguments.name, "quality", before, figures)


class ProfileSearcher:
    """An installation with a tenant for each profile, all with the same documents."""

    def __init__(self, session: Session) -> None:
        self._catalog = session.catalog
        self._retriever = Retriever(session.catalog, session.store, session.embedders)

    def search_all(
        self, tenant: str, questions: Sequence[JudgedQuestion], **request: Any
    ) -> dict[str, Sequence[Hit]]:
        """Return the hits of every question, by question id."""
        return {question.id: self._search(tenant, question, request) for question in questions}

    def _search(
        self, tenant: str, question: JudgedQuestion, request: Mapping[str, Any]
    ) -> Sequence[Hit]:
        search_request = SearchRequest(query=question.question, **request)
        answer = self._retriever.search(tenant, search_request)
        if answer.degraded:
            sys.exit(f"{question.id} was answered without {', '.join(answer.degraded)}")
        return answer.hits

    def count_corpus(self) -> dict[str, dict[str, int]]:
        """Count the documents and passages of each tenant."""
        documents = {
            profile: [d for d in self._catalog.documents.all(profile) if d.status == "READY"]
            for profile in PROFILES
        }
        return {
            profile: {
                "documents": len(ready),
                "passages": sum(document.chunk_count for document in ready),
            }
            for profile, ready in documents.items()
        }

    def close(self) -> None:
        """Wait until the cost of the questions is recorded."""
        self._retriever.close()


@contextmanager
def open_searcher(servers: Servers, work: Path, reranker: Path) -> Iterator[ProfileSearcher]:
    """Sync a new installation; yield an object that asks it questions."""
    home = work / "home"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    write_tenants(home / "tenants.yaml", reranker)
    servers.use_home(home, "quality")
    cli = [*CLI]
    subprocess.run([*cli, "up", "--no-dagster"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*cli, "sync", "--all"], check=True)
    with Session() as session:
        searcher = ProfileSearcher(session)
        try:
            yield searcher
        finally:
            searcher.close()


def build_stand_in(work: Path) -> Path:
    """Build a reranker's folder from the shipped model."""
    from benchmarks.late_interaction import build_reranker

    folder = work / "stand-in"
    build_reranker(folder)
    return folder


def write_tenants(path: Path, reranker: Path) -> None:
    """Write a tenant for each profile, named like it; documents get the demo's settings."""
    sources = [
        {"name": name, "type": "files", "root": str(root), "include": INCLUDE}
        for name, root in (("handbook", HANDBOOK), ("annex", ANNEX))
    ]
    rerank = {"folder": str(reranker), "seconds": PATIENCE, "by_default": False}
    workspace = {"parser": SETTINGS["parser"], "embedder": {"provider": "local"}}
    settings: dict[str, Any] = {"workspace": workspace, "documents": SETTINGS}
    tenants = [
        {
            **settings[profile],
            "id": profile,
            "profile": profile,
            "sources": sources,
            "retrieval": {"rerank": rerank},
        }
        for profile in PROFILES
    ]
    path.write_text(json.dumps({"tenants": tenants}))  # JSON is YAML


def compare_modes(
    questions: Sequence[JudgedQuestion], rankings: Mapping[str, Answers]
) -> dict[str, Any]:
    """Return each mode's measures, also by kind of question, and the differences between modes."""
    print_unanswered(questions, rankings)
    kinds: dict[str, list[str]] = {"all": [question.id for question in questions]}
    for question in questions:
        kinds.setdefault(question.kind, []).append(question.id)
    values = {mode: compute_measures(questions, ranking) for mode, ranking in rankings.items()}
    return {
        "questions": {kind: len(ids) for kind, ids in kinds.items()},
        "modes": {
            mode: {
                kind: {measure: asdict(estimate_mean(of[measure], ids)) for measure in MEASURES}
                for kind, ids in kinds.items()
            }
            for mode, of in values.items()
        },
        "judged": {
            mode: compute_judged_share(questions, ranking) for mode, ranking in rankings.items()
        },
        "differences": [
            {
                "of": one,
                "to": other,
                **{
                    name: asdict(estimate_difference(values[one][name], values[other][name]))
                    for name in MEASURES
                },
            }
            for one, other in COMPARED
        ],
    }


def calibrate(
    questions: Sequence[JudgedQuestion], by_threshold: Mapping[float, Answers]
) -> dict[str, Any]:
    """Evaluate every threshold; choose two on one half, and report them on the other."""
    first, second = halves(questions)
    curves = [
        [measure_threshold(min_score, part, hits) for min_score, hits in by_threshold.items()]
        for part in (questions, first, second)
    ]
    whole, to_choose, to_report = curves
    reported = {kept.min_score: kept for kept in to_report}
    return {
        "curve": [kept.as_json() for kept in whole],
        "chosen": {
            name: reported[choose(to_choose).min_score].as_json()
            for name, choose in (("harmless", choose_harmless), ("separating", choose_separating))
        },
    }


def print_unanswered(questions: Sequence[JudgedQuestion], rankings: Mapping[str, Answers]) -> None:
    """Print the questions not answered in any mode: their judgements may be wrong."""
    never = [
        question.id
        for question in questions
        if not any(
            question.is_answered_by(hit)
            for ranking in rankings.values()
            for hit in ranking[question.id]
        )
    ]
    if never:
        print(
            f"{format_count(len(never), 'question')} not answered in any mode: {', '.join(never)}"
        )


def record_pool(questions: Sequence[JudgedQuestion], rankings: Mapping[str, Answers]) -> None:
    """Print the passages without a judgement, and record that they were read."""
    pool: dict[str, frozenset[str]] = {}
    for question in questions:
        hits = [hit for ranking in rankings.values() for hit in ranking[question.id]]
        pool[question.id] = question.pool | {hash_passage(hit.text) for hit in hits}
        unknown = {hit.text: hit for hit in hits if not question.knows(hit)}
        if unknown:
            print(f"\n{question.id}: {question.question}")
        for hit in unknown.values():
            print(f"  {hit.uri}: {' '.join(hit.text.split())}")
    save_pool(pool)


if __name__ == "__main__":
    main()
