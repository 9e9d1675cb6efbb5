"""Calibrate the least cosine of a guideline's passages, for the shipped model.

    python -m benchmarks.guidelines_threshold

The judged documents are synced as a project's guidelines, with the shipped model, and searched by
vectors alone. Each threshold is chosen on one half of the questions and reported on the other.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import PROJECT, describe_machine, read_load, save_result
from benchmarks.quality import THRESHOLDS, TOP_K, ProfileSearcher, calibrate
from benchmarks.servers import Servers, benchmark_servers
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
    result = {
        "benchmark": "guidelines-threshold",
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "passages": passages,
        **calibrate(questions, hits_by_threshold),
        "machine": before,
        "load_average_after": read_load(),
    }
    print(save_result("guidelines-threshold", result))


def make_installation(servers: Servers, home: Path) -> None:
    """Sync an installation with one project, whose guidelines are switched on."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
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
    (home / "tenants.yaml").write_text(json.dumps({"tenants": [tenant]}))  # JSON is YAML
    os.environ |= {
        "RAG_ASSETS_HOME": str(home),
        "RAG_ASSETS_DATABASE_URL": servers.create_database("guidelines"),
        "RAG_ASSETS_ELASTICSEARCH_URL": servers.elasticsearch_url,
    }
    cli = [sys.executable, "-m", "rag_assets.cli"]
    subprocess.run([*cli, "organizations", "put", "benchmark", "--guidelines"], check=True)
    subprocess.run([*cli, "sync", TENANT], check=True)


if __name__ == "__main__":
    main()
