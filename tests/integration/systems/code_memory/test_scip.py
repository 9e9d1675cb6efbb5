"""References that a SCIP index resolves: exact where names alone are only possible."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assets.retrieval.documents import DocumentReader
from rag_assets.retrieval.model import Caller
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.definitions import relations_report
from rag_assets.systems.code_memory.pipeline.relation_drift import compare_relations
from rag_assets.declarations import PLAIN
from tests.code_index import differences, index_of
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

PROJECTS = Path(__file__).parents[3] / "unit/systems/code_memory/derived/indexed"


def repository(installation: Installation, tenant: str, *, with_index: bool) -> MadeRepository:
    """Make a repository of the project `shop`, and its tenant."""
    made = MadeRepository(installation.home.parent / "sources" / tenant)
    shutil.copytree(PROJECTS / "shop", made.root, dirs_exist_ok=True)
    (made.root / ".gitignore").write_text("index.scip\n")
    if not with_index:
        (made.root / "index.scip").unlink()
    made.commit()
    installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[{"name": "repo", "type": "git", "root": str(made.root)}],
    )
    return made


def answers(driver: Driver, tenant: str) -> CodeAnswers:
    session = driver.session
    record = session.catalog.tenants.get(tenant)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), Caller())


def test_try(shared_installation: Installation, driver: Driver) -> None:
    for tenant, with_index in (("scip-without", False), ("scip-with", True)):
        repository(shared_installation, tenant, with_index=with_index)
        driver.sync(tenant)
        about = answers(driver, tenant)
        print("=====", tenant)
        for name in ("shop.models.Invoice.total", "shop.carts.Cart.close", "shop.store.Store.save"):
            print("--- touches", name)
            print(about.what_touches(symbol=name))
            print("--- impact", name)
            print(about.impact_of(symbols=[name]))
        for d in driver.session.catalog.documents.all(tenant):
            print(d.uri, d.status, d.chunk_count, d.source_type, d.error_message)
        with driver.locked(tenant) as ctx:
            report = relations_report(PLAIN, ctx)
            print({k: v.value for k, v in report.metadata.items() if k!="by kind"})
    assert 0
