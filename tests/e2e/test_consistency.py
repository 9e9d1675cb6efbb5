"""While a document changes repeatedly, every search finds exactly one complete version of it.

Another process searches in all three modes without pause, while this one syncs version after
version. A version may be found as soon as its file is written, and must be found once its sync has
returned.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tests.driving import Driver
from tests.installation import FAST, Installation

VERSIONS = 18
PARTS = 8
SMALL_CHUNKS = {"chunker": {"max_tokens": 64, "overlap": 0}}
VERSION = r"version (\d+)"
MODES = ("knn", "text", "hybrid")
URI = "files/counter.md"


def counter(version: int) -> str:
    """Return a document whose chunks all name its version."""
    sentence = f"The counter stands at version {version}. "
    sections = (f"## Part {part}\n\n{sentence * 3}\n" for part in range(1, PARTS))
    return f"# Counter\n\n{sentence * 3}\n\n" + "\n".join(sections)


@dataclass(frozen=True)
class Seen:
    """The versions and chunks that one search found, and its time (time.monotonic)."""

    mode: str
    versions: list[int]
    chunks: int
    began: float
    ended: float


@dataclass(frozen=True)
class Written:
    """The times at which a version's file was written, and at which its sync returned."""

    version: int
    began: float
    ended: float


@pytest.mark.ci
def test_every_search_finds_the_newest_or_the_previous_version(
    installation: Installation, tmp_path: Path
) -> None:
    folder = installation.add_tenant("changing", **FAST, **SMALL_CHUNKS)
    for number in range(10):
        (folder / f"steady-{number}.md").write_text(f"# Steady {number}\n\nIt stays. {number}\n")
    (folder / "counter.md").write_text(counter(0))
    driver = Driver(installation)
    driver.sync("changing")
    whole = sum(uri == URI for uri, _, _ in installation.entries("changing").values())
    assert whole >= PARTS // 2
    written = [Written(0, 0.0, time.monotonic())]
    seen_file = tmp_path / "seen"
    searcher = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, "changing", str(seen_file)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        stdin=subprocess.PIPE,
    )
    try:
        wait_for_lines(seen_file, len(MODES))
        for version in range(1, VERSIONS):
            began = time.monotonic()
            (folder / "counter.md").write_text(counter(version))
            driver.sync("changing")
            written.append(Written(version, began, time.monotonic()))
        time.sleep(0.5)
    finally:
        searcher.communicate()
    assert searcher.returncode == 0
    searches = [Seen(**json.loads(line)) for line in seen_file.read_text().splitlines()]
    assert {search.mode for search in searches} == set(MODES)
    assert len(searches) >= 2 * VERSIONS
    wrong = [search for search in searches if not is_right(search, written, whole)]
    assert not wrong, (len(wrong), len(searches), wrong[:5])
    found = {search.versions[0] for search in searches}
    assert len(found) >= VERSIONS * 3 // 4, "the searches hardly met the changes"
    assert searches[-1].versions[0] == VERSIONS - 1


def is_right(search: Seen, written: list[Written], whole: int) -> bool:
    """Return whether a search found one complete version that was valid during the search."""
    oldest = max(w.version for w in written if w.ended <= search.began)
    newest = max(w.version for w in written if w.began <= search.ended)
    return (
        search.chunks == whole
        and len(search.versions) == 1
        and oldest <= search.versions[0] <= newest
    )


def wait_for_lines(path: Path, count: int, timeout: float = 60) -> None:
    """Wait until the searcher has written so many lines."""
    deadline = time.monotonic() + timeout
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < deadline, "the searcher did not begin"
        time.sleep(0.05)


def search_until_told(tenant: str, path: Path) -> None:
    """Search in all modes until standard input closes, and write the results to a file."""
    import itertools
    import select

    from rag_assets.cli.session import Session
    from rag_assets.search import Retriever
    from rag_assets.search.model import SearchRequest

    session = Session()
    retriever = Retriever(session.catalog, session.store, session.embedders)
    query = "The counter stands at version"
    with path.open("w") as seen:
        for mode in itertools.cycle(MODES):
            began = time.monotonic()
            answer = retriever.search(tenant, SearchRequest(query=query, top_k=40, mode=mode))
            ended = time.monotonic()
            hits = [hit for hit in answer.hits if hit.uri == URI]
            versions = {int(number) for hit in hits for number in re.findall(VERSION, hit.text)}
            chunks = len({one.ordinal for hit in hits for one in hit.ranges})
            found = Seen(mode, sorted(versions), chunks, began, ended)
            seen.write(json.dumps(asdict(found)) + "\n")
            seen.flush()
            if select.select([sys.stdin], [], [], 0)[0]:
                return


if __name__ == "__main__":
    search_until_told(sys.argv[1], Path(sys.argv[2]))
