"""Entries in other words are merged into one pattern, unless their solutions contradict."""

from __future__ import annotations

from rag_assets.pipeline.erasure import settle_open_erasures
from tests.installation import Installation
from tests.integration.systems.experience.conftest import Learning

PROBLEM = "The PDF export cuts long tables."
REWORDED = "Long tables are cut off in the PDF."
STEPS = "Repeat the header and break rows between pages."


def learn(learning: Learning, problem: str, steps: str) -> int:
    """Add an entry of another project; return how many entries were merged."""
    project = learning.project()
    learning.failure(project, problem, steps)
    merged: int = learning.learned(project)["merged"]
    return merged


def test_the_same_in_other_words_raises_a_count_and_says_why(local_learning: Learning) -> None:
    assert learn(local_learning, PROBLEM, STEPS) == 0
    assert learn(local_learning, REWORDED, "Break rows across pages with a repeated header.") == 1
    [pattern] = local_learning.ask("tables are cut in an export to PDF")
    assert pattern["success_count"] == 2
    shown = local_learning.ok("GET", f"/patterns/{pattern['id']}", role="admin")
    [merge] = shown["merges"]
    assert merge["way"] == "near"
    assert merge["merged_by"] == "rag-assets"
    assert merge["problem_cosine"] >= merge["bounds"]["problem"]
    assert merge["solution_cosine"] >= merge["bounds"]["solution"]

    entry = merge["entry_id"]
    local_learning.ok("POST", f"/patterns/{pattern['id']}/split", {"entry_id": entry}, role="admin")
    local_learning.driver.sync(local_learning.tenant)
    found = local_learning.ask("tables are cut in an export to PDF")
    assert [one["success_count"] for one in found] == [1, 1]


def test_a_solution_that_is_turned_round_is_an_alternative(local_learning: Learning) -> None:
    learn(local_learning, PROBLEM, STEPS)
    assert learn(local_learning, REWORDED, "Never repeat the header or break rows.") == 0
    found = local_learning.ask("tables are cut in an export to PDF")
    assert [one["success_count"] for one in found] == [1, 1]
    assert found[0]["conflicts_with"] == [found[1]["id"]]


def test_what_was_compared_leaves_the_lake_with_its_entry(
    local_learning: Learning, installed: Installation
) -> None:
    learn(local_learning, PROBLEM, STEPS)
    ctx = installed.context(local_learning.tenant, local_learning.driver.session)
    kept = ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)
    project = local_learning.project("bad")
    local_learning.failure(project, "The clock drifts.", "Set it by the network.")
    local_learning.learned(project)
    assert len(ctx.lake.read_vector_hashes(ctx.embedder.embedder_id)) == len(kept) + 3
    local_learning.ok("POST", "/retract", {"project_id": project}, role="admin")
    with local_learning.driver.locked(local_learning.tenant) as held:
        [receipt] = settle_open_erasures(held)
    assert receipt.proof is not None
    assert receipt.proof["complete"]
    assert ctx.lake.read_vector_hashes(ctx.embedder.embedder_id) == kept
