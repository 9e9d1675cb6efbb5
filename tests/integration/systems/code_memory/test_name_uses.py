"""Rows of names leave with the file, document or project, and only readers see them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from rag_assets.pipeline.erasure import purge_documents
from rag_assets.pipeline.removal import purge_tenant
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.lock import Holder
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.catalog.tables import name_uses
from rag_assets.systems.code_memory.retrieval.uses import find_uses_of_word
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.tenants.file import TenantsFile
from tests.driving import Driver
from tests.installation import FAST, Installation

PROJECT, NEIGHBOUR, STRANGER = "names-mine", "names-neighbour", "names-stranger"
OPEN, CLOSED = "open", "closed"


@pytest.fixture(scope="module")
def sources(shared_installation: Installation, driver: Driver) -> Path:
    root = shared_installation.home.parent / "sources" / "name-uses"
    for tenant, organization in ((PROJECT, "acme"), (NEIGHBOUR, "acme"), (STRANGER, "other")):
        for source in (OPEN, CLOSED):
            folder = root / tenant / source
            folder.mkdir(parents=True)
            write(folder, "shared", f"class {source.title()}Box\n  def lift_lid\n  end\nend\n")
            write(folder, "caller", f"def call_{source}\n  box.lift_lid\nend\n")
        shared_installation.add_tenant(
            tenant,
            **FAST,
            profile="code-memory",
            organization=organization,
            project=tenant,
            sources=[
                {
                    "name": name,
                    "root": str(root / tenant / name),
                    "include": ["**/*.rb"],
                    "scope": scope,
                }
                for name, scope in ((OPEN, "public"), (CLOSED, "board"))
            ],
        )
        driver.sync(tenant)
    with driver.locked(PROJECT) as ctx:
        ctx.catalog.access.grant(ctx.ref, "board", ["ann"])
    return root


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.rb").write_text(text)


def names(driver: Driver, tenant: str) -> set[str]:
    """Return all names in the rows of a tenant."""
    query = select(name_uses.c.names).where(name_uses.c.tenant == tenant)
    with driver.session.catalog.database.begin() as connection:
        indexes = connection.scalars(query).all()
    return {line.partition("|")[0] for index in indexes for line in index.split("\n")}


def answers(driver: Driver, tenant: str, caller: Caller) -> CodeAnswers:
    session = driver.session
    record = session.catalog.tenants.get(tenant)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), caller)


def test_a_reader_of_one_scope_sees_no_name_of_another(sources: Path, driver: Driver) -> None:
    may_all, may_open = Caller(principals=("ann",)), Caller()
    for name in ("lift_lid", "call_closed", "ClosedBox", "call_open"):
        everything, some = (
            about.what_touches(symbol=name) + about.impact_of(symbols=[name])
            for about in (answers(driver, PROJECT, who) for who in (may_all, may_open))
        )
        shown = some.replace(name, "")
        assert "closed" not in shown.lower(), name
        if name in {"lift_lid", "ClosedBox"}:
            assert "closed/caller.rb" in everything
        if name == "call_closed":
            assert "Nothing uses it" in everything, "its definition may be read"
            assert "Nothing uses it" not in some
    view = Walker(driver.session.catalog).get_serving_view(PROJECT, may_open)
    assert view is not None
    assert {use.uri for use in find_uses_of_word(view, "lift_lid").possible} == {
        "open/caller.rb",
        "open/shared.rb",
    }
    assert find_uses_of_word(view, "ClosedBox").possible == ()
    defined = [use.relation for use in find_uses_of_word(view, "lift_lid").possible]
    assert "defines" in {relation.kind for relation in defined}, "a definition is a place too"


def test_names_follow_a_file_that_changes_and_vanishes(sources: Path, driver: Driver) -> None:
    folder = sources / PROJECT / OPEN
    write(folder, "once", "def first_version_name\nend\n")
    driver.sync(PROJECT)
    assert "first_version_name" in names(driver, PROJECT)
    write(folder, "once", "def second_version_name\nend\n")
    driver.sync(PROJECT)
    assert "first_version_name" not in names(driver, PROJECT)
    assert "second_version_name" in names(driver, PROJECT)
    (folder / "once.rb").unlink()
    driver.sync(PROJECT, allow_deletes=True)
    assert "second_version_name" not in names(driver, PROJECT)
    assert "lift_lid" in names(driver, PROJECT)


def test_erasing_a_document_removes_its_names_alone(sources: Path, driver: Driver) -> None:
    for tenant in (PROJECT, NEIGHBOUR, STRANGER):
        write(sources / tenant / OPEN, "erased", "def erased_name\n  lift_lid\nend\n")
        driver.sync(tenant)
        assert "erased_name" in names(driver, tenant)
    (sources / PROJECT / OPEN / "erased.rb").unlink()
    with driver.locked(PROJECT) as ctx:
        view = Walker(ctx.catalog).get_serving_view(PROJECT, Caller())
        assert view is not None
        [found] = view.find_by_name("erased_name")
        assert purge_documents(ctx, [found.document_id], by="a test").proof["complete"]
    assert "erased_name" not in names(driver, PROJECT)
    assert "lift_lid" in names(driver, PROJECT)
    for tenant in (NEIGHBOUR, STRANGER):
        assert "erased_name" in names(driver, tenant)


def test_removing_a_project_removes_its_names_alone(sources: Path, driver: Driver) -> None:
    session = driver.session
    catalog, kept = session.catalog, (names(driver, NEIGHBOUR), names(driver, STRANGER))
    record = catalog.tenants.get(PROJECT)
    TenantsFile(session.settings.tenants_file).remove(PROJECT)
    with catalog.lock.hold(PROJECT, Holder.here("removal")):
        receipt = purge_tenant(
            *(catalog, session.lake, session.store, record, session.settings), by="a test"
        )
    assert receipt.proof["complete"]
    assert names(driver, PROJECT) == set()
    assert (names(driver, NEIGHBOUR), names(driver, STRANGER)) == kept
    assert "lift_lid" in kept[0] & kept[1]
