"""The size of a run's slice; the next run continues where it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

import pytest

from rag_assets.pipeline.context import SliceLimits
from rag_assets.storage.lake.store import TenantLake
from tests.driving import Driver
from tests.installation import FAST, Installation


def test_a_run_without_time_left_parses_one_document(shared_installation: Installation) -> None:
    folder = shared_installation.add_tenant("slow-parser", **FAST)
    for number in range(3):
        (folder / f"{number}.md").write_text(f"Text of number {number}.\n")
    hasty = Driver(shared_installation, SliceLimits(parse_seconds=0))
    runs = [hasty.run_once("slow-parser") for _ in range(3)]
    assert [run["parsed"] for run in runs] == [1, 1, 1]
    assert [run["pending"] for run in runs] == [2, 1, 0]
    assert len(shared_installation.entries("slow-parser")) == 3


def test_a_slice_reads_the_hashes_of_its_chunks_once(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_installation.add_tenant("hashes-once", **FAST)
    for number in range(3):
        (folder / f"{number}.md").write_text(f"Text of number {number}.\n")
    reads: list[int] = []
    read = TenantLake.read_chunk_hashes

    def counting(lake: TenantLake, keys: Collection[str]) -> dict[str, tuple[str, ...]]:
        reads.append(len(keys))
        return read(lake, keys)

    monkeypatch.setattr(TenantLake, "read_chunk_hashes", counting)
    assert driver.run_once("hashes-once")["embedded"] == 3
    assert reads == [3]


def test_few_others_go_with_urgent_documents_where_many_wait(
    shared_installation: Installation,
) -> None:
    folder = shared_installation.add_tenant("edits-first", **FAST)
    for number in range(130):
        (folder / f"{number:03}.md").write_text(f"Text of number {number}.\n")
    driver = Driver(shared_installation, SliceLimits(documents=120))
    # The first hundred of a listing are urgent, and as many more as fill a quarter go with them.
    assert driver.run_once("edits-first")["parsed"] == 100
    assert driver.run_once("edits-first")["parsed"] == 30
    for number in range(130):
        (folder / f"{number:03}.md").write_text(f"Another text of number {number}.\n")
    (folder / "another.md").write_text("An edit.\n")
    everything = Driver(shared_installation, SliceLimits(documents=131))
    assert everything.run_once("edits-first")["parsed"] == 131, "what fits is not put off"


def test_an_edit_goes_first_among_the_new_files_of_its_listing(
    shared_installation: Installation,
) -> None:
    folder = shared_installation.add_tenant("edit-in-bulk", **FAST)
    (folder / "z-edited.md").write_text("Its first text.\n")
    driver = Driver(shared_installation, SliceLimits(documents=120))
    driver.run_once("edit-in-bulk")
    for number in range(250):
        (folder / f"{number:03}.md").write_text(f"Text of number {number}.\n")
    (folder / "z-edited.md").write_text("Its second text.\n")
    os.utime(folder / "z-edited.md", (1_000_000_000, 1_000_000_000))
    (folder / "z-new.md").write_text("Saved last.\n")
    newest = time.time() + 60
    os.utime(folder / "z-new.md", (newest, newest))
    assert driver.run_once("edit-in-bulk")["parsed"] == 100
    uris = [uri for uri, _, _ in shared_installation.entries("edit-in-bulk").values()]
    assert sum("/z-" in uri for uri in uris) == 2


def test_a_large_document_is_embedded_over_several_runs_behind_small_ones(
    shared_installation: Installation,
) -> None:
    slow = {"provider": "deterministic", "seconds_per_text": 0.02}
    folder = shared_installation.add_tenant("large-behind", embedder=slow)
    parts = (f"## Part {n}\n\n" + f"Words of part {n} follow. " * 60 for n in range(150))
    (folder / "large.md").write_text("\n\n".join(parts))
    hasty = Driver(shared_installation, SliceLimits(embed_seconds=0.3))
    first = hasty.run_once("large-behind")
    assert (first["embedded"] > 0, first["upserted"]) == (True, 0)
    (folder / "small.md").write_text("# Small\n\nAn edit.\n")
    second = hasty.run_once("large-behind")
    assert (second["upserted"], second["pending"]) == (1, 1)
    assert set(shared_installation.entries("large-behind").values()) != set()
    embedded = first["embedded"] + second["embedded"]
    while (run := hasty.run_once("large-behind"))["pending"]:
        assert run["upserted"] == 0, "it is published whole"
        embedded += run["embedded"]
    ctx = shared_installation.context("large-behind")
    assert embedded + run["embedded"] == len(ctx.lake.read_vector_hashes(ctx.embedder.embedder_id))
    assert run["upserted"] > 150


def test_others_go_on_for_a_moment_beside_an_urgent_document(
    shared_installation: Installation,
) -> None:
    slow = {"provider": "deterministic", "seconds_per_text": 0.05}
    folder = shared_installation.add_tenant("moment", embedder=slow)
    for number in range(250):
        (folder / f"{number:03}.md").write_text(f"Text of number {number}.\n")
    limits = SliceLimits(documents=200, hurried_seconds=0.2)
    first = Driver(shared_installation, limits).run_once("moment")
    assert first["embedded"] == 100, "the first hundred of a listing are urgent"
    changed = Driver(shared_installation, limits, has_changed=lambda: True)
    second = changed.run_once("moment")
    assert 0 < second["embedded"] < 150, "a change that waits ends the run soon"
    assert second["pending"] > 0
    third = Driver(shared_installation, limits).run_once("moment")
    assert (third["embedded"], third["pending"]) == (150 - second["embedded"], 0)
