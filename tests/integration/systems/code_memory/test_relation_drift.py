"""Relations and derived documents changed from outside are found, reported and restored."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, insert, select, update

from rag_assets.pipeline.context import DailyShare, TenantContext
from rag_assets.pipeline.mark_keeper import accept_catalog
from rag_assets.pipeline.repair import repair_tenant
from rag_assets.storage.catalog.tables import source_records
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.catalog.tables import edges, name_uses, symbols
from rag_assets.systems.code_memory.definitions import build_verdict
from rag_assets.systems.code_memory.pipeline.fact_store import (
    RelationDrift,
    compare_relations,
)
from rag_assets.systems.code_memory.relations.relations import Relations, Symbol
from tests.driving import Driver
from tests.dumps import lose_changes
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

TENANT = "relation-drift"
FILES = {
    "composer.json": '{"require": {"laravel/framework": "^12.0"}}',
    "bootstrap/app.php": (
        "<?php\nuse Illuminate\\Foundation\\Application;\n"
        "return Application::configure(basePath: dirname(__DIR__))\n"
        "    ->withRouting(web: __DIR__ . '/../routes/web.php')->create();\n"
    ),
    "routes/web.php": (
        "<?php\nuse App\\Http\\Controllers\\BillController;\n"
        "use Illuminate\\Support\\Facades\\Route;\n"
        "Route::get('bills', [BillController::class, 'index'])->name('bills.index');\n"
    ),
    "app/Http/Controllers/BillController.php": (
        "<?php\nnamespace App\\Http\\Controllers;\nuse App\\Models\\Bill;\n"
        "class BillController {\n    public function index() { return Bill::all(); }\n}\n"
    ),
    "app/Models/Bill.php": (
        "<?php\nnamespace App\\Models;\nuse Illuminate\\Database\\Eloquent\\Model;\n"
        "class Bill extends Model {}\n"
    ),
    "tools/count.py": (
        "def count(rows):\n    return len(rows)\n\n\ndef all():\n    return count([])\n"
    ),
}
ALL = DailyShare(1, datetime.now(UTC).date())


@pytest.fixture(scope="module", autouse=True)
def indexed(shared_installation: Installation, driver: Driver) -> None:
    made = MadeRepository(shared_installation.home.parent / "sources" / TENANT)
    made.commit(FILES)
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[{"name": "repo", "type": "git", "root": str(made.root), "ref": "HEAD"}],
    )
    driver.sync(TENANT)


def rows(ctx: TenantContext) -> list[list[tuple[object, ...]]]:
    """Return all symbols, edges, names and derived documents of the tenant."""
    queries = [
        *(
            select(t).where(t.c.tenant == TENANT).order_by(*t.primary_key)
            for t in (symbols, edges, name_uses)
        ),
        select(source_records.c.document_id, source_records.c.record_key, source_records.c.text)
        .where(source_records.c.tenant == TENANT)
        .order_by(source_records.c.document_id),
    ]
    with ctx.catalog.database.begin() as connection:
        return [[tuple(row) for row in connection.execute(query)] for query in queries]


def alter_names(connection: Connection) -> None:
    connection.execute(update(name_uses).where(name_uses.c.tenant == TENANT).values(numbers=[1]))


def lose_symbols(connection: Connection) -> None:
    connection.execute(delete(symbols).where(symbols.c.tenant == TENANT))


def lose_an_edge(connection: Connection) -> None:
    connection.execute(delete(edges).where(edges.c.tenant == TENANT, edges.c.kind == "calls"))


def alter_an_edge(connection: Connection) -> None:
    connection.execute(
        update(edges)
        .where(edges.c.tenant == TENANT, edges.c.target == "App\\Models\\Bill")
        .values(target="App\\Models\\Other")
    )


def add_an_edge(connection: Connection) -> None:
    row = connection.execute(select(edges).where(edges.c.tenant == TENANT).limit(1)).one()
    connection.execute(insert(edges).values({**row._mapping, "position": 9_999, "kind": "made"}))


def leave_nobodys(connection: Connection) -> None:
    row = connection.execute(select(edges).where(edges.c.tenant == TENANT).limit(1)).one()
    connection.execute(insert(edges).values({**row._mapping, "chunk_set_key": "f" * 64}))


def lose_a_derived_document(connection: Connection) -> None:
    connection.execute(delete(source_records).where(source_records.c.tenant == TENANT))


@pytest.mark.parametrize(
    "damage",
    [
        alter_names,
        lose_symbols,
        lose_an_edge,
        alter_an_edge,
        add_an_edge,
        leave_nobodys,
        lose_a_derived_document,
    ],
)
def test_what_was_changed_is_found_told_and_made_anew(
    driver: Driver, damage: Callable[[Connection], None]
) -> None:
    with driver.locked(TENANT) as ctx:
        whole = rows(ctx)
        assert all(whole)
        sound = compare_relations(ctx, ALL)
        assert sound.is_empty
        assert sound.compared >= len(FILES)
        with ctx.catalog.database.begin() as connection:
            damage(connection)
        assert rows(ctx) != whole
        found = compare_relations(ctx, ALL)
        assert not found.is_empty
        assert not build_verdict(found, {}).passed
        assert not repair_tenant(ctx).is_healthy
        assert rows(ctx) == whole
        assert compare_relations(ctx, ALL).is_empty
    assert driver.sync(TENANT)["embedded"] == 0


def test_shares_of_all_days_find_what_all_at_once_does(driver: Driver) -> None:
    with driver.locked(TENANT) as ctx:
        whole = rows(ctx)
        with ctx.catalog.database.begin() as connection:
            lose_symbols(connection)
        expected = compare_relations(ctx, ALL)
        first = ALL.day.toordinal()
        shares = [DailyShare(4, type(ALL.day).fromordinal(first + day)) for day in range(4)]
        parts = [compare_relations(ctx, share) for share in shares]
        assert sorted(id_ for part in parts for id_ in part.altered) == [*expected.altered]
        assert sum(part.compared for part in parts) == expected.compared
        repair_tenant(ctx)
        assert rows(ctx) == whole


def test_what_was_erased_meanwhile_is_not_recorded_again(driver: Driver) -> None:
    with driver.locked(TENANT) as ctx:
        whole = rows(ctx)
        stated = Relations((Symbol("erased", "function", True, 1, 1),), ())
        get_code_catalog(ctx.catalog).relation_rows.replace_rows(ctx.ref, {"f" * 64: stated})
        assert rows(ctx) == whole


def test_a_lake_that_lost_texts_takes_no_relation_and_no_derived_document_away(
    driver: Driver,
) -> None:
    with driver.locked(TENANT) as ctx:
        whole = rows(ctx)
        lake = Path(ctx.lake._location.url)
        kept = lake.with_name(f"{lake.name}-kept")
        shutil.copytree(lake, kept)
        try:
            for file in (lake / "chunks").rglob("*.parquet"):
                file.unlink()
            damaged = replace(ctx, lake=ctx.lake.readable())
            texts = get_code_catalog(ctx.catalog).relation_rows.list_texts(TENANT, ALL.hash_range)
            assert damaged.lake.find_missing_chunk_sets({text.chunk_set_key for text in texts})
            assert compare_relations(damaged, ALL).is_empty
            assert compare_relations(damaged, ALL, repairs=True).is_empty
            assert rows(ctx) == whole
        finally:
            shutil.rmtree(lake)
            kept.rename(lake)
        assert compare_relations(ctx, ALL).is_empty


def test_while_the_catalog_is_set_back_nothing_goes(driver: Driver) -> None:
    with driver.locked(TENANT) as ctx:
        with ctx.catalog.database.begin() as connection:
            leave_nobodys(connection)
        before = rows(ctx)
        lose_changes(ctx)
        assert compare_relations(ctx, ALL, repairs=True).orphans == 1
        assert rows(ctx) == before
        assert accept_catalog(ctx)
        assert compare_relations(ctx, ALL, repairs=True).orphans == 1
        assert compare_relations(ctx, ALL).is_empty


def test_a_tenant_without_source_code_has_nothing_to_compare() -> None:
    verdict = build_verdict(RelationDrift(), {})
    assert verdict.passed
    assert verdict.description == "no source code is indexed"
