"""References resolved by a SCIP index are exact where names alone are only possible."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rag_assets.declarations import PLAIN
from rag_assets.pipeline.context import DailyShare
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.definitions import relations_report
from rag_assets.systems.code_memory.pipeline.fact_store import compare_relations
from rag_assets.systems.code_memory.retrieval.walk import Walker
from tests.code_index import differences, index_of, left_over
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository
from tests.scip_index import Document
from tests.scip_index import index_of as made_index

SHOP = Path(__file__).parents[3] / "unit/systems/code_memory/derived/indexed/shop"
INDEX = (SHOP / "index.scip").read_bytes()
FILES = {
    ".gitignore": "*.scip\n",
    **{
        path.relative_to(SHOP).as_posix(): path.read_text()
        for path in SHOP.rglob("*")
        if path.is_file() and path.suffix != ".scip"
    },
    "app.py": """from flask import Flask
from shop.checkout import remind

app = Flask(__name__)


@app.post("/reminders")
def reminders():
    remind(7)
""",
}
ALL = DailyShare(1, datetime.now(UTC).date())


def repository(installation: Installation, tenant: str, **settings: object) -> MadeRepository:
    """Create a repository of the project `shop` without its index, and a tenant for it."""
    made = MadeRepository(installation.home.parent / "sources" / tenant)
    made.commit(FILES)
    installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[{"name": "repo", "type": "git", "root": str(made.root), **settings}],
    )
    return made


def answers(driver: Driver, tenant: str) -> CodeAnswers:
    session = driver.session
    record = session.catalog.tenants.get(tenant)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), Caller())


def reported(driver: Driver, tenant: str) -> str | None:
    """Return what the report on relations says about SCIP indexes."""
    with driver.locked(tenant) as ctx:
        report = relations_report(PLAIN, ctx)
        assert compare_relations(ctx, ALL).is_empty
        assert left_over(ctx) == []
    assert report is not None
    value = report.metadata.get("SCIP indexes")
    return None if value is None else str(value.value)


def test_an_index_makes_possible_uses_certain_and_drops_those_of_other_definitions(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "scip-uses"
    made = repository(shared_installation, tenant)
    driver.sync(tenant)
    before = answers(driver, tenant).what_touches(symbol="shop.carts.Cart.close")
    assert "possibly Cart.close, one of 2 definitions of the name (2):" in before
    assert "SCIP" not in before
    assert reported(driver, tenant) is None
    made.write({"index.scip": INDEX})
    driver.sync(tenant)
    about = answers(driver, tenant)
    close = about.what_touches(symbol="shop.carts.Cart.close")
    assert "shop/checkout.py:15  shop.checkout.check_out  cart.close() (SCIP index)" in close
    assert "possibl" not in close, "the others close a store, and a file of another package"
    assert "shop/checkout.py:9  shop.checkout.check_out (SCIP index)" in about.impact_of(
        symbols=["shop.store.Store.save"]
    )
    assert "calls Store.close (SCIP index)  shop/checkout.py:24" in about.who_serves(
        "POST /reminders"
    ).replace("shop.store.", "")
    walk = Walker(driver.session.catalog).walk_from_name(
        tenant, Caller(), "shop.models.Invoice", direction="in", depth=1
    )
    assert {use.how for use in walk.uses} <= {"scip", "name"}
    assert reported(driver, tenant) == "- `index.scip: 8 documents read, 0 stale, ignored`"
    documents = {one.uri: one for one in driver.session.catalog.documents.all(tenant)}
    of_index = [document for uri, document in documents.items() if document.source_type == "scip"]
    assert len(of_index) == 1 + 7
    assert {one.chunk_count for one in of_index} == {0}, "nothing of an index is embedded"


def test_a_damaged_index_is_reported_and_the_rest_is_indexed(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "scip-damaged"
    made = repository(shared_installation, tenant, scip=["gone.scip"])
    made.write({"index.scip": INDEX[:5_000]})
    driver.sync(tenant)
    failed = {
        one.uri: one.error_message
        for one in driver.session.catalog.documents.all(tenant)
        if one.status != "READY"
    }
    assert failed.keys() == {"repo/index.scip", "repo/gone.scip"}
    assert "is damaged, or is not a SCIP index" in str(failed["repo/index.scip"])
    assert "'gone.scip' is missing" in str(failed["repo/gone.scip"])
    assert "checkout.py:14" in answers(driver, tenant).what_touches(
        symbol="shop.models.Invoice.total"
    )
    made.write({"gone.scip": INDEX, "index.scip": INDEX})
    driver.sync(tenant)
    said = reported(driver, tenant)
    assert said is not None
    assert said.count("8 documents read, 0 stale, ignored") == 2


@pytest.mark.parametrize("step", ["appears", "changes", "goes", "is stale"])
def test_after_an_index_changes_the_tenant_equals_a_fresh_one(
    step: str, shared_installation: Installation, driver: Driver
) -> None:
    tenant, fresh = (f"scip-{step.replace(' ', '-')}-{of}" for of in ("old", "new"))
    made = repository(shared_installation, tenant)
    if step != "appears":
        made.write({"index.scip": INDEX})
    driver.sync(tenant)
    files: dict[str, str | bytes] = {"index.scip": INDEX}
    if step == "changes":
        files["index.scip"] = made_index(
            [Document("shop/log.py", [(5, 4, 8, "save().", 1), (8, 12, 17, "close().", 8)])]
        )
    if step == "is stale":
        files["shop/checkout.py"] = "# changed\n" + FILES["shop/checkout.py"]
    made.write(files)
    if step == "goes":
        (made.root / "index.scip").unlink()
    driver.sync(tenant)
    other = repository(shared_installation, fresh)
    shutil.copytree(made.root / "shop", other.root / "shop", dirs_exist_ok=True)
    if step != "goes":
        other.write({"index.scip": files["index.scip"]})
    driver.sync(fresh)
    with driver.locked(tenant) as ctx:
        held = index_of(ctx)
    with driver.locked(fresh) as ctx:
        assert differences(held, index_of(ctx)) == []
    stale = {"goes": None, "changes": "1 document read, 0", "is stale": "8 documents read, 1"}
    said = stale.get(step, "8 documents read, 0")
    assert reported(driver, tenant) == (said and f"- `index.scip: {said} stale, ignored`")
