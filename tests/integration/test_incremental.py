"""The cost of a change: exactly what changed is processed again, whatever happened to the files."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rag_assets.common.settings import Settings
from rag_assets.pipeline import recipes
from rag_assets.pipeline.preview import preview_sync
from rag_assets.sensors.due import explain_due
from rag_assets.sensors.state import read_tenant_state
from rag_assets.storage.index import fields, model
from rag_assets.tenants.model import Tenant
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.aging import age, write_old
from tests.rules import shared_scanner

MANY = 500
SHORT = {"chunker": {"chunker": "heading", "max_tokens": 40, "overlap": 8}}


STATEMENT = "Document {} says thing {}, and says no more than that."


def section(document: int, number: int) -> str:
    return (
        f"## Part {number}\n\n{STATEMENT.format(document, number)} It stands here all on its own.\n"
    )


def page(document: int, sections: int = 3) -> str:
    parts = "\n".join(section(document, number) for number in range(sections))
    return f"# Document {document}\n\n{parts}"


def index_writes(installation: Installation) -> int:
    """Return how many entries Elasticsearch has written or deleted for this installation."""
    prefix = installation.environment["RAG_ASSETS_INDEX_PREFIX"]
    url = f"{installation.environment['RAG_ASSETS_ELASTICSEARCH_URL']}/{prefix}-*/_stats/indexing"
    totals = httpx.get(url).json()["_all"]["total"]["indexing"]
    return int(totals["index_total"] + totals["delete_total"])


def lake_state(installation: Installation) -> dict[str, int]:
    """Return every file of the lake with its modification time."""
    lake = Settings.from_environment().local / "lake"
    return {str(p): p.stat().st_mtime_ns for p in lake.rglob("*") if p.is_file()}


def due(installation: Installation, tenant_id: str) -> str | None:
    """Return why the daemon would run the tenant's chain now."""
    catalog = installation.session().catalog
    record = catalog.tenants.get(tenant_id)
    tenant = Tenant.from_config(record.config)
    state = read_tenant_state(catalog, record, tenant, Settings.from_environment())
    return explain_due(state, datetime.now(UTC))


@pytest.fixture(scope="module")
def many(shared_installation: Installation, driver: Driver) -> Path:
    """Create a synced tenant with many files."""
    folder = shared_installation.add_tenant("many", **FAST, **SHORT)
    for number in range(MANY):
        write_old(folder / f"{number:04}.md", page(number))
    assert driver.sync("many")["embedded"] == 3 * MANY
    return folder


@pytest.mark.timeout(240)
def test_a_no_op_embeds_and_writes_nothing(
    shared_installation: Installation, driver: Driver, many: Path
) -> None:
    assert shared_installation.sync("many").nothing_to_do
    before = index_writes(shared_installation), lake_state(shared_installation)
    assert shared_installation.sync("many").nothing_to_do
    assert not driver.sync("many")  # also if the stages run nevertheless
    assert (index_writes(shared_installation), lake_state(shared_installation)) == before


def test_one_percent_edited_embeds_exactly_the_changed_chunks(
    shared_installation: Installation, driver: Driver, many: Path
) -> None:
    before = shared_installation.entries("many")
    edited = range(0, MANY, 100)
    for number in edited:
        path = many / f"{number:04}.md"
        write_old(path, path.read_text().replace("says thing 1,", "says another thing,"))
    done = driver.sync("many")
    assert done["changed"] == done["parsed"] == done["embedded"] == len(edited)
    assert done["upserted"] == done["deleted"] == 3 * len(edited)
    after = shared_installation.entries("many")
    texts_before = Counter(text for _, text, _ in before.values())
    texts_after = Counter(text for _, text, _ in after.values())
    assert (texts_after - texts_before).total() == len(edited)


def test_changes_without_a_change_of_text_embed_nothing(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("moves", **FAST, **SHORT)
    for number in range(6):
        write_old(folder / f"{number}.md", page(number))
    assert driver.sync("moves")["embedded"] == 18
    (folder / "below").mkdir()
    (folder / "0.md").rename(folder / "renamed.md")
    (folder / "1.md").rename(folder / "below" / "1.md")
    shutil.copy(folder / "2.md", folder / "copy.md")
    (folder / "3.md").touch()
    write_old(folder / "4.md", page(4))  # written again with its first content
    done = driver.sync("moves")
    assert (done["added"], done["removed"], done["changed"]) == (3, 2, 0)
    assert (done["parsed"], done["chunks"], done["embedded"]) == (0, 0, 0)
    assert (done["upserted"], done["deleted"]) == (9, 6)
    found = Counter(uri for uri, _, _ in shared_installation.entries("moves").values())
    names = ("renamed", "below/1", "2", "copy", "3", "4", "5")
    assert found == {f"files/{name}.md": 3 for name in names}


def test_another_analysis_of_words_writes_all_entries_again_and_embeds_nothing(
    shared_installation: Installation, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_installation.add_tenant("analyzed", **FAST)
    texts = ("Die Häuser werden jedes Jahr von uns geprüft.", "Der Zähler wird nicht gelesen.")
    for number, text in enumerate(texts):
        write_old(folder / f"{number}.md", f"{text}\n")

    def found(query: str) -> list[str]:
        hits = shared_installation.search("analyzed", query, mode="text")
        return [hit.uri for hit in hits]

    with monkeypatch.context() as former:
        for module in (model, recipes):
            former.setattr(module, "TERMS_VERSION", 1)
        former.setattr(fields, "compute_entry_terms", lambda text, _: text.lower().replace(".", ""))
        assert driver.sync("analyzed")["embedded"] == 2
    assert found("Häuser") == ["files/0.md"]
    assert found("Haus") == []
    with driver.locked("analyzed") as ctx:
        ahead = preview_sync(ctx)
    assert (ahead.documents, ahead.chunks, ahead.embeddings) == (2, 2, 0)
    assert (ahead.parse, ahead.cut, ahead.new_generation) == (0, 0, False)
    assert due(shared_installation, "analyzed") is not None
    done = driver.sync("analyzed")
    assert (done["upserted"], done["embedded"], done["parsed"]) == (2, 0, 0)
    assert found("Haus") == found("Häuser") == ["files/0.md"]
    assert shared_installation.sync("analyzed").nothing_to_do


def test_a_file_of_the_future_is_not_looked_at_for_ever(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("future", **FAST)
    path = folder / "a.md"
    path.write_text(page(1))
    age(path, seconds=-86_400 * 365)
    time.sleep(2.1)
    driver.sync("future")
    assert due(shared_installation, "future") is None
    path.write_text(page(2))
    age(path, seconds=-86_400 * 365)
    assert due(shared_installation, "future") is not None


def test_there_and_back_is_followed_each_time(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("back", **FAST)
    path = folder / "a.md"
    seen = []
    for round_ in range(4):
        write_old(path, page(round_ % 2))
        os.utime(path, (1_600_000_000, 1_600_000_000))  # not even their times differ
        assert due(shared_installation, "back") is not None
        done = driver.sync("back")
        assert done["upserted"] == (1 if round_ == 0 else done["deleted"])
        seen.append({text for _, text, _ in shared_installation.entries("back").values()})
    assert seen[0] == seen[2] != seen[1] == seen[3]
    assert done["embedded"] == 0
    time.sleep(2.1)
    driver.sync("back")
    assert due(shared_installation, "back") is None


def test_bad_and_good_again_is_ready_again(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("recovers", **FAST)
    path = folder / "a.md"
    write_old(path, page(1))
    driver.sync("recovers")
    before = shared_installation.entries("recovers")
    path.write_bytes(b"# Broken\n\xff\xfe\x00")
    age(path)
    assert driver.sync("recovers")["failed"] == 1
    assert shared_installation.entries("recovers") == before  # what was searchable stays so
    write_old(path, page(1))
    done = driver.sync("recovers")
    assert done["embedded"] == 0
    [document] = driver.session.catalog.documents.all("recovers")
    assert (document.status, document.error_message) == ("READY", None)
    # A version of its own all the same: what it says was written later.
    assert [*shared_installation.entries("recovers").values()] == [*before.values()]


def test_an_interruption_after_the_listing_is_completed_later(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("listed", **FAST)
    path = folder / "a.md"
    write_old(path, page(1))
    write_old(folder / "b.md", "# Other\n\nIt stays.\n")
    driver.sync("listed")
    path.rename(folder / "a.bak")  # no longer included
    from rag_assets.pipeline.listing import list_documents

    with driver.locked("listed") as ctx:
        list_documents(ctx, shared_scanner())
    assert not shared_installation.search("listed", "Document 1", mode="text")
    assert "removals wait" in (due(shared_installation, "listed") or "")
    (folder / "a.bak").rename(path)
    driver.sync("listed")
    documents = driver.session.catalog.documents.all("listed")
    assert [document.status for document in documents] == ["READY", "READY"]
    assert shared_installation.search("listed", "Document 1", mode="text")


def test_a_removed_source_is_emptied_once(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("sources", **FAST)
    other = folder.parent / "sources-other"
    other.mkdir()
    write_old(folder / "a.md", page(1))
    write_old(other / "b.md", page(2))
    files = {"name": "files", "type": "files", "root": str(folder)}
    second = {"name": "second", "type": "files", "root": str(other)}
    shared_installation.configure("sources", sources=[files, second])
    assert driver.sync("sources")["added"] == 2
    shared_installation.configure("sources", sources=[files])
    assert due(shared_installation, "sources") == "a source was removed"
    assert driver.sync("sources")["removed"] == 1
    assert due(shared_installation, "sources") is None
    found = {uri for uri, _, _ in shared_installation.entries("sources").values()}
    assert found == {"files/a.md"}


# -- incremental equals fresh

NAMES = ("a.md", "b.md", "deep/c.md", "deep/d.md", "e e.md")
TEXTS = (*(page(number, sections=1 + number % 3) for number in range(6)), "", "\x00bad")
edits = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(TEXTS)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just("copy"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    ),
    min_size=1,
    max_size=3,
)


def apply(folder: Path, edit: tuple[str, str, str | None]) -> None:
    kind, name, argument = edit
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if kind == "write":
        path.write_text(argument or "")
    elif not path.exists():
        return
    elif kind == "delete":
        path.unlink()
    elif argument != name:
        target = folder / str(argument)
        target.parent.mkdir(exist_ok=True)
        if kind == "move":
            path.rename(target)
        else:
            shutil.copy(path, target)


@settings(
    max_examples=8,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shrinking would take minutes; what fails prints its steps
    suppress_health_check=list(HealthCheck),
)
@given(steps=st.lists(edits, min_size=2, max_size=5))
def test_incremental_equals_fresh(
    shared_installation: Installation,
    driver: Driver,
    steps: list[list[tuple[str, str, str | None]]],
) -> None:
    if not (shared_installation.home.parent / "sources" / "steps").exists():
        shared_installation.add_tenant("steps", **FAST, **SHORT)
    folder = shared_installation.home.parent / "sources" / "steps"
    for step in steps:
        for edit in step:
            apply(folder, edit)
        driver.sync("steps")
    fresh = f"fresh-{time.monotonic_ns()}"
    shared_installation.add_tenant(fresh, root=folder, **FAST, **SHORT)
    driver.sync(fresh)

    def held(tenant_id: str) -> list[tuple[str, str, int]]:
        return sorted(shared_installation.entries(tenant_id).values())

    def standing(tenant_id: str) -> list[tuple[str, str]]:
        documents = driver.session.catalog.documents.all(tenant_id)
        return [(document.uri, document.status) for document in documents]

    # Of what turned bad, the last good version stays searchable; a fresh tenant never saw it.
    failed = {uri for uri, status in standing(fresh) if status == "FAILED"}
    assert standing("steps") == standing(fresh)
    assert [entry for entry in held("steps") if entry[0] not in failed] == held(fresh)
