"""Compare the product's three modes with BM25 and other hybrids on every judged set.

    python -m benchmarks.fusion.contest DATA              writes results/hybrids.json
    python -m benchmarks.fusion.contest DATA --url URL    times in an Elasticsearch that runs
    python -m benchmarks.fusion.contest DATA --multilingual    renews that part of the result alone

DATA holds the fetched files of the sets (README.md). All programs rank the same texts with the same
vectors: for each question, the stored list of its nearest passages by exact cosine. The time of a
question is measured on one large set, with the vectors themselves: the product asks Elasticsearch
as its searches do, the others their own in-memory stores. Samples of the sets that are not English
are also ranked with multilingual-e5-small.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final
from uuid import uuid4

import numpy as np
from ir_measures import R, iter_calc, nDCG
from scipy.stats import permutation_test

from benchmarks.fusion.lists import (
    MULTILINGUAL,
    SAMPLED_PASSAGES,
    SAMPLED_QUESTIONS,
    Array,
    ListedSet,
    build_entries,
    embed_set,
    list_embedding_texts,
)
from benchmarks.fusion.lists import load_sets as load_lists
from benchmarks.fusion.rules import (
    FETCHED,
    Candidates,
    Rule,
    rank_by_vectors,
    rank_by_words,
    score_product,
)
from benchmarks.fusion.sets import SETS, JudgedSet
from benchmarks.measure import (
    PROJECT,
    RESULTS,
    WORK,
    create_parser,
    describe_machine,
    report_result,
    save_result,
)
from benchmarks.rivals.environments import REQUIREMENTS, install_python
from benchmarks.servers import benchmark_servers
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.search.progress import Ranking, RankingKind
from rag_assets.search.scoring import fuse_rankings
from rag_assets.storage.index.common_words import is_english
from rag_assets.storage.index.model import IndexSpec, Owner, RankingRequest
from rag_assets.storage.index.store import StoreConfig, open_store
from rag_assets.storage.index.terms import parse_query_words

RIVALS: Final = ("bm25s", "langchain", "llamaindex")
TIMED: Final = "python-faq"
"""The set for measuring costs, with 1,500 passages."""
_MODES: Final[Mapping[str, tuple[Rule, Sequence[RankingKind]]]] = {
    "text": (rank_by_words, ("words",)),
    "knn": (rank_by_vectors, ("vector",)),
    "hybrid": (score_product, ("words", "vector")),
}
_HITS: Final = 10
_RESAMPLES: Final = 9_999
_SEED: Final = 7
_VERSIONS: Final = (
    "bm25s",
    "langchain-classic",
    "langchain-community",
    "llama-index-core",
    "llama-index-retrievers-bm25",
)
"""Packages whose versions the result reports."""


@dataclass(frozen=True, slots=True)
class RankedSet:
    """The rankings of a set's questions: passage numbers, best first, by program."""

    listed_set: ListedSet
    passages: int
    programs: Mapping[str, Sequence[Sequence[int]]]


def main() -> None:
    """Rank every set with every program, and save the result."""
    parser = create_parser(__doc__, name="hybrids", work=WORK)
    parser.add_argument("data", type=Path, help="folder of the fetched files; see README.md")
    parser.add_argument(
        "--url", help="address of a running Elasticsearch; by default one is started"
    )
    parser.add_argument(
        "--multilingual", action="store_true", help="only rank samples with multilingual-e5-small"
    )
    arguments = parser.parse_args()
    if arguments.multilingual:
        result = json.loads((RESULTS / f"{arguments.name}.json").read_text(encoding="utf-8"))
        print(save_result(arguments.name, {**result, "multilingual": _rank_multilingual()}))
        return
    before = describe_machine()
    folder = (arguments.work / "judged").absolute()
    lists = list(load_lists())
    judged_set = {listed_set.name: _read_set(listed_set, arguments.data) for listed_set in lists}
    ranked = [_rank_set(listed_set, judged_set[listed_set.name]) for listed_set in lists]
    for ranked_set in ranked:
        _write_task(
            folder / ranked_set.listed_set.name,
            judged_set[ranked_set.listed_set.name],
            ranked_set.programs["knn"],
        )
    vectors = asyncio.run(embed_set(judged_set[TIMED], OnnxEmbedder()))
    _write_task(
        folder / "timed",
        judged_set[TIMED],
        next(ranked_set for ranked_set in ranked if ranked_set.listed_set.name == TIMED).programs[
            "knn"
        ],
        vectors,
    )
    answers = {
        name: _run_rival(name, arguments.work, folder, [*judged_set, "timed"]) for name in RIVALS
    }
    with _open_elasticsearch(arguments.url, arguments.work) as url:
        milliseconds = _time_product(url, judged_set[TIMED], vectors)
    for name, of_sets in answers.items():
        milliseconds[name] = round(median(of_sets["timed"]["milliseconds"]), 1)
    ranked = [
        replace(
            ranked_set,
            programs={
                **ranked_set.programs,
                **{
                    name: answer[ranked_set.listed_set.name]["rankings"]
                    for name, answer in answers.items()
                },
            },
        )
        for ranked_set in ranked
    ]
    figures = {
        "rounds": 1,
        "versions": _read_versions(),
        "milliseconds": {"set": TIMED, "programs": milliseconds},
        "sets": [_build_row(ranked_set) for ranked_set in ranked],
        "overall": _compute_overall(ranked),
        "multilingual": _rank_multilingual(),
    }
    report_result(arguments.name, "hybrids", before, figures)


def _rank_multilingual() -> dict[str, Any]:
    """Rank the samples of the sets that are not English, with multilingual-e5-small."""
    return {
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "passages": SAMPLED_PASSAGES,
        "questions": SAMPLED_QUESTIONS,
        "sets": [_build_row(_rank_set(listed_set)) for listed_set in load_lists(MULTILINGUAL)],
    }


def _read_set(listed_set: ListedSet, data: Path) -> JudgedSet:
    """Return the texts of a set, with the passage numbers of its stored lists."""
    judged_set = SETS[listed_set.name](data)
    if [dict(grades) for _, grades in judged_set.questions] != [
        dict(grade) for grade in listed_set.grades
    ]:
        raise SystemExit(
            f"error: the stored lists of {listed_set.name} were not made from the files in {data}\n"
            "hint: fetch the files that benchmarks/fusion/README.md names, or make the lists again:"
            f" python -m benchmarks.fusion.lists {data} {listed_set.name}"
        )
    return judged_set


def _rank_set(listed_set: ListedSet, judged_set: JudgedSet | None = None) -> RankedSet:
    """Rank a set with each mode of the product."""
    candidates = Candidates.from_set(listed_set)
    programs = {}
    for mode, (rule, _) in _MODES.items():
        scores = np.where(candidates.exists, rule(candidates), -np.inf)
        if mode != "hybrid":  # keep only candidates of this ranking
            ranks = candidates.word_ranks if mode == "text" else candidates.vector_ranks
            scores = np.where(ranks < scores.shape[1], scores, -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :_HITS]
        programs[mode] = [
            [
                int(candidates.passages[at, column])
                for column in columns
                if scores[at, column] > -np.inf
            ]
            for at, columns in enumerate(order)
        ]
    return RankedSet(listed_set, len(judged_set.passages) if judged_set else 0, programs)


def _write_task(
    folder: Path,
    judged_set: JudgedSet,
    nearest: Sequence[Sequence[int]],
    vectors: tuple[Array, Array] | None = None,
) -> None:
    """Write the input of `benchmarks.rivals.searching` for a set."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "language": judged_set.language,
        "passages": list_embedding_texts(judged_set),
        "questions": [question for question, _ in judged_set.questions],
        "nearest": nearest,
    }
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    if vectors:
        np.savez(folder / "vectors.npz", passages=vectors[0], questions=vectors[1])


def _run_rival(name: str, work: Path, folder: Path, sets: Sequence[str]) -> dict[str, Any]:
    """Run a program on sets, and return its answers by set."""
    environment = (work / "environments" / f"search-{name}").absolute()
    python = install_python(environment, REQUIREMENTS / f"search-{name}.txt")
    paths = {set_name: folder / set_name for set_name in sets}
    command = [str(python), "-m", "benchmarks.rivals.searching", name, *map(str, paths.values())]
    subprocess.run(command, check=True, cwd=PROJECT)
    return {
        set_name: json.loads((path / f"{name}.json").read_text())
        for set_name, path in paths.items()
    }


def _time_product(
    url: str, judged_set: JudgedSet, vectors: tuple[Array, Array]
) -> dict[str, float]:
    """Return the median milliseconds of a question in each mode, without embedding it."""
    passages, questions = vectors
    store = open_store(StoreConfig(url, prefix=f"contest{uuid4().hex[:8]}"))
    try:
        spec = IndexSpec(dimensions=passages.shape[1])
        index_name = store.indexes.place(spec, "any", "shared").name
        owner = Owner("contest", 1, 1, b"k" * 32)
        entries = zip(build_entries(judged_set, owner), passages, strict=True)
        store.entries.write(index_name, [replace(one, vector=vector) for one, vector in entries])

        async def time_questions() -> dict[str, float]:
            searcher = store.searcher()
            spent: dict[str, list[float]] = {mode: [] for mode in _MODES}
            for (question, _), vector in zip(judged_set.questions, questions, strict=True):
                by = {"words": question, "vector": vector}
                for mode, (_, kinds) in _MODES.items():
                    began = time.perf_counter()
                    requests = [RankingRequest(by[kind], FETCHED) for kind in kinds]
                    found = await searcher.rankings(index_name, owner, requests)
                    terms = len(parse_query_words(question).terms) if is_english(question) else 0
                    fuse_rankings(
                        [Ranking(k, f, terms=terms) for k, f in zip(kinds, found, strict=True)]
                    )
                    spent[mode].append((time.perf_counter() - began) * 1_000)
            await searcher.close()
            return {mode: round(median(of_mode), 1) for mode, of_mode in spent.items()}

        return asyncio.run(time_questions())
    finally:
        for name in store.indexes.names():
            store.indexes.drop(name)
        store.close()


def _compute_values(ranked: RankedSet, program: str) -> dict[str, Array]:
    """Return nDCG@10 and recall@5 of every question."""
    qrels = {
        str(at): {str(passage): grade for passage, grade in grades.items()}
        for at, grades in enumerate(ranked.listed_set.grades)
    }
    runs = {
        str(at): {str(passage): float(_HITS - rank) for rank, passage in enumerate(ranking)}
        for at, ranking in enumerate(ranked.programs[program])
    }
    names = {nDCG @ _HITS: "ndcg", R @ 5: "recall"}
    values = {name: np.zeros(len(qrels)) for name in names.values()}
    for metric in iter_calc([*names], qrels, runs):
        values[names[metric.measure]][int(metric.query_id)] = metric.value
    return values


def _build_row(ranked: RankedSet) -> dict[str, Any]:
    """Return each program's scores on a set, and the p-value of its difference from hybrid."""
    listed_set = ranked.listed_set
    values = {program: _compute_values(ranked, program) for program in ranked.programs}
    row: dict[str, Any] = {
        "set": listed_set.name,
        "kind": listed_set.kind,
        "language": listed_set.language,
        "questions": len(listed_set.grades),
        "passages": ranked.passages,
        "programs": {
            program: {
                "ndcg": _round(measures["ndcg"].mean()),
                "recall": _round(measures["recall"].mean()),
                "p": _compute_p_value(values["hybrid"]["ndcg"], measures["ndcg"]),
            }
            for program, measures in values.items()
        },
    }
    means = ", ".join(
        f"{name} {measures['ndcg']:.3f}" for name, measures in row["programs"].items()
    )
    print(f"{listed_set.name}: {means}", flush=True)
    return row


def _compute_overall(ranked: Sequence[RankedSet]) -> dict[str, Any]:
    """Return means over the English sets and over all others, with p-values by question."""
    means = {}
    for group, is_group_english in {"English": True, "other languages": False}.items():
        sets = [
            ranked_set
            for ranked_set in ranked
            if (ranked_set.listed_set.language == "en") == is_group_english
        ]
        values = {
            program: [_compute_values(ranked_set, program)["ndcg"] for ranked_set in sets]
            for program in sets[0].programs
        }
        hybrid = np.concatenate(values["hybrid"])
        means[group] = {
            "sets": len(sets),
            "programs": {
                program: {
                    "ndcg": _round(np.mean([of_set.mean() for of_set in of_sets])),
                    "p": _compute_p_value(hybrid, np.concatenate(of_sets)),
                }
                for program, of_sets in values.items()
            },
        }
    return means


def _compute_p_value(first: Array, second: Array) -> float:
    """Return the p-value of a paired permutation test of the means."""
    if np.array_equal(first, second):
        return 1.0
    tested = permutation_test(
        (first, second),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        batch=500,
        rng=_SEED,
    )
    return _round(tested.pvalue)


def _round(value: Any) -> float:
    return round(float(value), 4)


def _read_versions() -> dict[str, str]:
    pins = [
        line.split()[0].split("==")
        for name in RIVALS
        for line in (REQUIREMENTS / f"search-{name}.txt").read_text().splitlines()
        if "==" in line
    ]
    return {name: pinned for name, pinned in pins if name in _VERSIONS}


@contextmanager
def _open_elasticsearch(url: str | None, work: Path) -> Iterator[str]:
    with ExitStack() as stack:
        yield url or stack.enter_context(benchmark_servers(work)).elasticsearch_url


if __name__ == "__main__":
    main()
