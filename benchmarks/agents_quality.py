"""How well agents find pages of a command's help: by vectors, by vectors and words, and preloaded.

    python -m benchmarks.agents_quality

The pages are those that `agent docs` makes of the git on this machine; the questions are in
agent_questions.yaml, and none was used to choose a setting.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchmarks.measure import save
from rag_assets.agents.corpus.generate import pages_of_help
from rag_assets.agents.corpus.pages import head_of, write_pages
from rag_assets.agents.credentials import ProjectRules
from rag_assets.agents.globs import expand
from rag_assets.agents.manager import RagIndexManager
from rag_assets.agents.preload import preload
from rag_assets.agents.sections import read_sections
from rag_assets.agents.settings import Mode
from rag_assets.common.tokens import count_text
from rag_assets.indexing.memory import MemoryStore
from rag_assets.models.embedding.local import OnnxEmbedder

TOP_K = 5
BUDGET = 12_000
KINDS = ("reworded", "flag")


def main() -> None:
    """Measure, and write the result."""
    questions = YAML(typ="safe").load(Path(__file__).with_name("agent_questions.yaml"))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        corpus = pages_of_help(["git"], 1, dict(os.environ), calls=500)
        write_pages(corpus.pages, place)
        manager = RagIndexManager(OnnxEmbedder(), MemoryStore())
        report = manager.ensure_index("git", ["*.md"], place)
        result = {
            "version": corpus.pages[0].version,
            "pages": len(corpus.pages),
            "chunks": report.chunks,
            "preload": preloaded(place, questions),
            **{mode: searched(manager, place, questions, mode) for mode in ("knn", "hybrid")},
        }
    print(json.dumps(result, indent=1))
    save("agents-quality", result)


def searched(
    manager: RagIndexManager, place: Path, questions: list[dict[str, Any]], mode: Mode
) -> dict[str, Any]:
    """Recall, mean reciprocal rank and tokens of a mode, by kind of question."""
    ranks: dict[str, list[int]] = {kind: [] for kind in KINDS}
    tokens, none = [], []
    for one in questions:
        found = manager.search("git", one["question"], TOP_K, mode=mode)
        if one["kind"] == "none":
            none.append(max(hit.score for hit in found))
            continue
        tokens.append(sum(count_text(hit.chunk.content) for hit in found))
        pages = [(head_of(place / hit.chunk.source_path) or ("",))[0] for hit in found]
        at = [rank for rank, page in enumerate(pages, 1) if page in one["pages"]]
        ranks[one["kind"]].append(min(at, default=0))
    measures = {
        kind: {
            f"recall@{TOP_K}": round(sum(map(bool, found)) / len(found), 3),
            "mrr": round(statistics.mean(1 / rank if rank else 0.0 for rank in found), 3),
        }
        for kind, found in ranks.items()
    }
    best = [round(score, 3) for score in none]
    return {**measures, "tokens": statistics.median(tokens), "best score of none": best}


def preloaded(place: Path, questions: list[dict[str, Any]]) -> dict[str, Any]:
    """The share of questions whose page is within the budget, and the tokens of every prompt."""
    files = expand(["*.md"], place).files
    loaded = preload(read_sections(files, ProjectRules()), BUDGET)
    within = {
        head[0]
        for file in files
        if f"--- {file.path} ---" in loaded.text and (head := head_of(file.file)) is not None
    }
    shares = {}
    for kind in KINDS:
        asked = [one for one in questions if one["kind"] == kind]
        shares[kind] = round(sum(bool(within & set(one["pages"])) for one in asked) / len(asked), 3)
    return {**shares, "tokens": loaded.tokens}


if __name__ == "__main__":
    main()
