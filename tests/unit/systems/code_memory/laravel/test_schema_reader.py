"""Statements on tables, compared with the record of Laravel's own Blueprint."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.laravel.schema.reader import list_schema_facts
from rag_assets.systems.code_memory.laravel.schema.tables import MigratedTables, resolve_tables
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.schema_truth import EXAMPLE, schema_by_laravel
from tests.unit.systems.code_memory.laravel.sqlite_tables import laravels, ours

HEAD = """<?php

use Illuminate\\Database\\Migrations\\Migration;
use Illuminate\\Database\\Schema\\Blueprint;
use Illuminate\\Support\\Facades\\DB;
use Illuminate\\Support\\Facades\\Schema;

return new class extends Migration
{
    public function up(): void
    {
"""
TAIL = "    }\n};\n"


def migration(*statements: str) -> str:
    return HEAD + "\n".join(statements) + "\n" + TAIL


def facts(text: str) -> list[Fact]:
    found = list_schema_facts(PhpSource(text))
    return sorted(found, key=lambda fact: fact.values["order"])


def replayed(*texts: str) -> MigratedTables:
    return resolve_tables(
        FileFacts(f"database/migrations/2024_01_0{n}_000000_step.php", "php", tuple(facts(text)))
        for n, text in enumerate(texts, 1)
    )


def said_by_laravel(directory: Path, texts: Sequence[str]) -> dict[str, Any]:
    paths = [directory / f"{n:03}.php" for n in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    truth = schema_by_laravel(paths)
    assert truth["failed"] == []
    return truth


@pytest.mark.slow
def test_statements_are_those_that_laravel_records() -> None:
    paths = [path for path in EXAMPLE.rglob("*.php") if path.parent.name == "migrations"]
    paths.sort(key=lambda path: path.name)
    truth = schema_by_laravel(paths, list(EXAMPLE.rglob("schema/*.sql")))
    made = {"create", "add", "change", "drop", "dropIfExists"}
    # The one statement whose condition does not hold is never run by Laravel.
    mine = [
        (v["table"], [_without_place(one) for one in v["columns"]], v["commands"])
        for path in paths
        for fact in facts(path.read_text(encoding="utf-8"))
        if (v := fact.values)["how"] == "call"
        and not (v["conditional"] and v["table"] == "invoices")
    ]

    assert len(mine) == len(truth["statements"]) >= 55
    for (table, columns, commands), theirs in zip(mine, truth["statements"], strict=True):
        assert table == theirs["table"]
        assert columns == [_without_place(one) for one in theirs["columns"]]
        commands_of_laravel = (c for c in theirs["commands"] if c["name"] not in made)
        stated = [{k: v for k, v in c.items() if k != "algorithm"} for c in commands_of_laravel]
        # `Schema::rename` is a statement of its own here, and a command of Laravel's Blueprint.
        if commands or [c["name"] for c in stated] != ["rename"]:
            assert commands == stated


def _without_place(column: dict[str, Any]) -> dict[str, Any]:
    """Return a column without the position that a closure of `after` gives it."""
    return {key: value for key, value in column.items() if key != "after"}


NAMES = st.sampled_from(["alpha", "beta_code", "gamma", "delta_at", "epsilon", "zeta_name"])
KINDS = st.sampled_from(
    [
        "string",
        "text",
        "integer",
        "bigInteger",
        "unsignedInteger",
        "tinyInteger",
        "smallInteger",
        "mediumInteger",
        "boolean",
        "date",
        "dateTime",
        "timestamp",
        "time",
        "json",
        "jsonb",
        "uuid",
        "float",
        "double",
        "decimal",
        "char",
        "longText",
        "mediumText",
        "binary",
        "ipAddress",
        "macAddress",
        "year",
        "unsignedBigInteger",
        "dateTimeTz",
        "timestampTz",
        "unsignedDecimal",
    ]
)
MODIFIERS = st.lists(
    st.sampled_from(
        [
            "->nullable()",
            "->default(7)",
            "->default('x')",
            "->unique()",
            "->index()",
            "->nullable(false)",
        ]
    ),
    max_size=2,
    unique_by=lambda modifier: modifier[:8],
)
COLUMN = st.builds(
    lambda kind, name, modifiers: (name, f"$table->{kind}('{name}'){''.join(modifiers)};"),
    KINDS,
    NAMES,
    MODIFIERS,
)
WHOLE = st.lists(
    st.sampled_from(
        [
            "$table->timestamps();",
            "$table->softDeletes();",
            "$table->morphs('owner');",
            "$table->nullableUuidMorphs('actor');",
            "$table->rememberToken();",
            "$table->foreignId('user_id')->nullable()->constrained()->cascadeOnDelete();",
            "$table->foreignUuid('team_id')->constrained('teams', 'id')->nullOnDelete();",
            "$table->enum('state', ['a', 'b'])->default('a');",
            "$table->unsignedBigInteger('city_id'); $table->foreign('city_id')->references('id')->on('cities');",  # noqa: E501
        ]
    ),
    unique=True,
    max_size=5,
)


@st.composite
def histories(draw: st.DrawFn) -> list[str]:
    """Draw the history of a table that is created, altered and renamed."""
    columns = dict(draw(st.lists(COLUMN, min_size=2, max_size=5)))
    body = ["$table->id();", *columns.values(), *draw(WHOLE)]
    texts = [_on("create", "things", body)]
    left = sorted(columns)
    added = [(f"{name}_2", text.replace(name, f"{name}_2")) for name, text in draw(_FURTHER)]
    if added:
        texts.append(_on("table", "things", [text for _, text in dict(added).items()]))
    if draw(st.booleans()):
        texts.append(_on("table", "things", [f"$table->dropColumn('{left[0]}');"]))
        left = left[1:]
    if left and draw(st.booleans()):
        texts.append(_on("table", "things", [f"$table->renameColumn('{left[0]}', 'omega');"]))
        left = left[1:]
    if left and draw(st.booleans()):
        texts.append(_on("table", "things", [f"$table->text('{left[0]}')->nullable()->change();"]))
    if draw(st.booleans()):
        texts.append(migration("Schema::rename('things', 'items');"))
    return texts


_FURTHER = st.lists(COLUMN, max_size=2)


def _on(method: str, table: str, body: Sequence[str]) -> str:
    inner = "\n".join(body)
    return migration(f"Schema::{method}('{table}', function (Blueprint $table) {{\n{inner}\n}});")


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories())
def test_generated_histories_end_in_laravels_tables(tmp_path: Path, texts: list[str]) -> None:
    truth = said_by_laravel(tmp_path, texts)

    found = replayed(*texts)

    assert {name: ours(table) for name, table in found.tables.items()} == {
        name: laravels(name, table) for name, table in truth["tables"].items()
    }
    assert not any(table.reasons for table in found.tables.values())


def test_down_never_counts() -> None:
    text = migration("Schema::create('a', fn (Blueprint $t) => $t->id());").replace(
        "};\n", "public function down() { Schema::drop('a'); } };\n"
    )

    assert [(fact.values["action"], fact.values["table"]) for fact in facts(text)] == [
        ("create", "a")
    ]
    assert set(replayed(text).tables) == {"a"}


def test_a_computed_table_stays_unresolved() -> None:
    text = migration("Schema::create(config('a.table'), fn (Blueprint $t) => $t->id());")

    found = replayed(text)

    assert found.tables == {}
    (evidence,) = found.unresolved
    assert evidence.fact.values["unread"] == ["the name of the table"]


def test_a_computed_column_and_a_macro_leave_the_table_incomplete() -> None:
    found = replayed(
        _on("create", "a", ["$table->id();", "$table->string($this->name());"]),
        _on("create", "b", ["$table->id();", "$table->auditColumns();"]),
    )

    assert found.tables["a"].reasons
    assert [*found.tables["b"].reasons] == ["auditColumns is not known"]


def test_loops_over_constants_and_own_methods_are_followed() -> None:
    text = migration(
        "foreach (['x', 'y'] as $name) {",
        "    Schema::create($name, function ($t) use ($name) { $this->fill($t, $name); });",
        "}",
    ).replace("};\n", "private function fill($t, $n) { $t->id(); $t->string($n.'_code'); } };\n")

    tables = replayed(text).tables

    assert {n: [*t.columns] for n, t in tables.items()} == {
        "x": ["id", "x_code"],
        "y": ["id", "y_code"],
    }


@pytest.mark.parametrize(
    "sql",
    ["ALTER TABLE `a` ADD b INT", "alter table only public.a drop column b", "RENAME TABLE a TO b"],
)
def test_a_statement_in_sql_leaves_its_table_incomplete(sql: str) -> None:
    found = replayed(_on("create", "a", ["$table->id();"]), migration(f"DB::statement('{sql}');"))

    assert [*found.tables["a"].reasons] == ["SQL is not known"]
    assert len(found.tables["a"].evidence) == 2


def test_a_table_dropped_in_sql_is_gone() -> None:
    drop = migration("DB::statement('DROP TABLE IF EXISTS a; INSERT INTO b VALUES (1)');")
    assert replayed(_on("create", "a", ["$table->id();"]), drop).tables == {}


@pytest.mark.parametrize(
    "body",
    [
        "if (1) {" * 20_000,
        "$x = " + "[" * 50_000 + ";",
        "$t" + "->a()" * 20_000 + ";",
        "$x = 'a'" + " . 'b'" * 20_000 + ";",
        "DB::statement('CREATE TABLE x (" + "(" * 50_000 + "');",
    ],
    ids=["conditions", "arrays", "chain", "text", "sql"],
)
def test_hostile_nesting_ends(body: str) -> None:
    begun = time.process_time()
    facts(migration(body))
    assert time.process_time() - begun < 5


def test_a_definition_kept_in_a_variable_is_followed() -> None:
    text = migration(
        "$define = fn (Blueprint $t) => $t->string('code');",
        "Schema::create('a', $define);",
        "Schema::create('b', $define);",
    )

    tables = replayed(text).tables

    assert {n: [*t.columns] for n, t in tables.items()} == {
        "a": ["code"],
        "b": ["code"],
    }
    assert not any(table.reasons for table in tables.values())
