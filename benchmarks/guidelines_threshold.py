"""Calibrate the least cosine of a guideline's passages, for the shipped model.

    python -m benchmarks.guidelines_threshold

The judged documents are synced as a project's guidelines, with the shipped model, and searched by
vectors alone. Each threshold is chosen on one half of the questions and reported on the other.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.measure import CLI, PROJECT, describe_machine, report_result
from benchmarks.quality import THRESHOLDS, TOP_K, ProfileSearcher, calibrate
from benchmarks.servers import Servers, benchmark_servers, make_home
from examples.judge import HANDBOOK
from examples.judged.judgements import ANNEX, judged_questions
from rag_assets.cli.demo import INCLUDE
from rag_assets.cli.session import Session

WORK = PROJECT / ".local" / "benchmark-guidelines"
TENANT = "guidelines"


def main() -> None:
    """Measure and save the result."""
    before = describe_machine()
    questions = judged_questions()
    with benchmark_servers(WORK) as servers:
        make_installation(servers, WORK / "home")
        with Session() as session:
            searcher = ProfileSearcher(session)
            hits_by_threshold = {
                min_score: searcher.search_all(TENANT, questions, top_k=TOP_K, min_score=min_score)
                for min_score in THRESHOLDS
            }
            searcher.close()
            passages = sum(d.chunk_count for d in session.catalog.documents.all(TENANT))
    figures = {
        "passages": passages,
        **calibrate(questions, hits_by_threshold),
    }
    report_result("guidelines-threshold", "guidelines-threshold", before, figures)


def make_installation(servers: Servers, home: Path) -> None:
    """Sync an installation with one project, whose guidelines are switched on."""
    sources = [
        {"name": name, "type": "files", "root": str(root), "include": INCLUDE}
        for name, root in (("handbook", HANDBOOK), ("annex", ANNEX))
    ]
    tenant = {
        "id": TENANT,
        "profile": "team-guidelines",
        "organization": "benchmark",
        "project": "handbook",
        "embedder": {"provider": "local"},
        "sources": sources,
    }
    make_home(home, [tenant])
    servers.use_home(home, "guidelines")
    cli = [*CLI]
    subprocess.run([*cli, "organizations", "put", "benchmark", "--guidelines"], check=True)
    subprocess.run([*cli, "sync", TENANT], check=True)


if __name__ == "__main__":
    main()
