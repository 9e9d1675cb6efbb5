"""Answers do not depend on documents that the caller may not read, here or in other tenants.

The oracle: of two readable documents, each has one of two words, and which of them comes first shows
which word is rarer in all that was counted.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rag_assets.retrieval.model import Caller, SearchAnswer, SearchRequest
from tests.back_ends import EACH_BACK_END
from tests.driving import Driver
from tests.installation import FAST, Installation

pytestmark = EACH_BACK_END

WORDS = ("merger", "layoff", "penguin", "слияние", "合并")
PLAIN = "gazebo"
"""What each of these words is compared with."""


@pytest.fixture(scope="module")
def driver(shared_installation: Installation) -> Driver:
    return Driver(shared_installation)


def write_oracle(folder: Path) -> None:
    """Write documents of equal length, one for each word."""
    for number, word in enumerate((*WORDS, PLAIN)):
        (folder / f"{number}.md").write_text(f"The note {number} is about {word} alone.\n")


def ask(installation: Installation, tenant: str) -> list[SearchAnswer]:
    """Ask word by word; returns the answers without their durations."""
    answers = []
    for mode in ("text", "hybrid"):
        for word in WORDS:
            request = SearchRequest(
                query=f"{word} {PLAIN}", mode=mode, caller=Caller(principals=("reader",))
            )
            answer = installation.retriever.search(tenant, request)
            answers.append(replace(answer, debug=replace(answer.debug, latency_ms={})))
    return answers


def test_no_word_of_another_tenant_changes_an_answer(
    shared_installation: Installation, driver: Driver
) -> None:
    write_oracle(shared_installation.add_tenant("asking", **FAST))
    driver.sync("asking")
    before = ask(shared_installation, "asking")
    others = shared_installation.add_tenant("others", **FAST)
    for number in range(30):
        (others / f"{number}.md").write_text(f"Secret {number}: {' '.join(WORDS[::2])}.\n")
    driver.sync("others")
    assert ask(shared_installation, "asking") == before


def test_no_word_of_an_unreadable_document_changes_an_answer(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("scoped", **FAST)
    write_oracle(folder)
    driver.sync("scoped")
    before = ask(shared_installation, "scoped")
    hidden = shared_installation.home.parent / "sources" / "hidden"
    hidden.mkdir()
    for number in range(30):
        (hidden / f"{number}.md").write_text(f"Secret {number}: {' '.join(WORDS[::2])}.\n")
    sources = [
        {"name": "files", "type": "files", "root": str(folder)},
        {"name": "hidden", "type": "files", "root": str(hidden), "scope": "board"},
    ]
    shared_installation.configure("scoped", sources=sources)
    driver.sync("scoped")
    assert ask(shared_installation, "scoped") == before
    assert len(shared_installation.search("scoped", "secret", mode="text")) == 0
