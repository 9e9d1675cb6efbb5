"""How soon an edit is searchable while a large first import is under way.

    python benchmarks/edit_during_import.py [--files 20000]

Works in a temporary home with embedded servers (or those of DATABASE_URL and ELASTICSEARCH_URL;
give an empty database). The import is `rag-assets sync` in a process of its own. Two files are
edited while it runs, one that is indexed already and one that is not, each a few times.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

WORDS = ("invoice", "harbour", "valve", "ledger", "courier", "meadow", "turbine", "archive")


def main() -> None:
    """Import, edit, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--edits", type=int, default=3)
    parser.add_argument("--text-seconds", type=float, default=0.0, help="of the embedder, each")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rag-assets-benchmark-") as directory:
        home, folder = Path(directory) / "home", Path(directory) / "files"
        home.mkdir()
        write_files(folder, arguments.files)
        os.environ["RAG_ASSETS_HOME"] = str(home)
        command("up", "--no-dagster")
        try:
            command("tenants", "add", "bench", "--source", str(folder))
            with (home / "tenants.yaml").open("a") as config:
                config.write("    embedder:\n      provider: deterministic\n")
                config.write(f"      seconds_per_text: {arguments.text_seconds}\n")
            measure(folder, arguments.files, arguments.edits)
        finally:
            command("down")


def measure(folder: Path, files: int, edits: int) -> None:
    """Start the import, edit, and print how long each edit took to be found."""
    started = time.monotonic()
    importing = subprocess.Popen([sys.executable, "-m", "rag_assets.cli", "sync", "bench"])
    probe = Probe()
    wait_for(lambda: probe.ready() > 0, 600)
    print(f"first documents are searchable after {time.monotonic() - started:.1f} s")
    for number in range(edits):
        ready, waiting = probe.uri("READY"), probe.uri("PROCESSING")
        marks = {}
        for name, uri in (("indexed", ready), ("waiting", waiting)):
            marks[name] = f"zebra{number}{name}"
            path = folder / uri.partition("/")[2]
            path.write_text(f"# {marks[name]}\n\nEdited while the import runs: {marks[name]}.\n")
        edited, pending = time.monotonic(), files - probe.ready()
        while marks:
            for name, mark in list(marks.items()):
                if probe.finds(mark):
                    seconds = time.monotonic() - edited
                    print(f"edit of an {name} file: {seconds:.1f} s, {pending} were pending")
                    del marks[name]
            if importing.poll() is not None and marks:
                sys.exit(f"the import ended before {marks} could be found")
            time.sleep(0.3)
    code = importing.wait()
    print(f"{files} files: {time.monotonic() - started:.0f} s, exit code {code}")


class Probe:
    """What a searcher sees meanwhile."""

    def __init__(self) -> None:
        from rag_assets.cli.commands.session import Session
        from rag_assets.retrieval import Retriever

        session = Session()
        self._catalog = session.catalog
        self._retriever = Retriever(session.catalog, session.store, session.embedders)

    def ready(self) -> int:
        """Documents that are searchable."""
        return self._catalog.documents.counts("bench").get("READY", 0)

    def uri(self, status: str) -> str:
        """The last document of this status."""
        rows = self._catalog.documents.all("bench")
        return [row.uri for row in rows if row.status == status][-1]

    def finds(self, mark: str) -> bool:
        """Whether a search finds the text."""
        from rag_assets.retrieval.model import SearchRequest

        hits = self._retriever.search("bench", SearchRequest(query=mark, mode="text")).hits
        return any(mark in hit.text for hit in hits)


def write_files(folder: Path, count: int) -> None:
    """Small Markdown files, each with a text of its own, in folders of 200."""
    for number in range(count):
        path = folder / f"{number // 200:04d}" / f"page-{number:06d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        word = WORDS[number % len(WORDS)]
        lines = [f"The {word} of page {number} has line {line}." for line in range(12)]
        path.write_text(f"# Page {number}\n\n" + "\n\n".join(lines) + "\n")


def command(*arguments: str) -> None:
    """Run a command of the project, which must succeed."""
    subprocess.run([sys.executable, "-m", "rag_assets.cli", *arguments], check=True)


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("it took too long")
        time.sleep(0.3)


if __name__ == "__main__":
    main()
