"""Migrations of Laravel, and the tables that they make."""

# ruff: noqa: E501

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.laravel.reader import read
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
    return sorted(list_schema_facts(PhpSource(text)), key=lambda fact: fact.values["order"])


def tables(*texts: str, **files: str) -> MigratedTables:
    """Return the tables of migrations, in order, with files of settings by name."""
    given = {f"database/migrations/2024_01_{n:02}_000000_step.php": t for n, t in enumerate(texts)}
    given |= {f"config/{name}.php": f"<?php return {text};" for name, text in files.items()}
    return resolve_tables(FileFacts(path, "php", read(t).facts) for path, t in given.items())


def columns(found: MigratedTables, table: str = "a") -> list[str]:
    return [*found.tables[table].columns]


def example_files() -> tuple[list[Path], list[Path]]:
    migrations = [path for path in EXAMPLE.rglob("*.php") if path.parent.name == "migrations"]
    return sorted(migrations, key=lambda path: path.name), list(EXAMPLE.rglob("schema/*.sql"))


def said_by_laravel(directory: Path, texts: Sequence[str]) -> dict[str, Any]:
    paths = [directory / f"{n:03}.php" for n in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    truth = schema_by_laravel(paths)
    assert truth["failed"] == []
    return truth


@pytest.mark.slow
def test_statements_are_those_that_laravel_records() -> None:
    paths, dumps = example_files()
    truth = schema_by_laravel(paths, dumps)
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
        *("string", "text", "integer", "bigInteger", "unsignedInteger", "tinyInteger"),
        *("smallInteger", "mediumInteger", "boolean", "date", "dateTime", "timestamp", "time"),
        *("json", "jsonb", "uuid", "float", "double", "decimal", "char", "longText", "mediumText"),
        *("binary", "ipAddress", "macAddress", "year", "unsignedBigInteger", "dateTimeTz"),
        *("timestampTz", "unsignedDecimal"),
    ]
)
MODIFIERS = st.lists(
    st.sampled_from(
        [
            *("->nullable()", "->default(7)", "->default('x')", "->unique()", "->index()"),
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
            "$table->unsignedBigInteger('city_id'); $table->foreign('city_id')->references('id')->on('cities');",
        ]
    ),
    unique=True,
    max_size=5,
)


@st.composite
def histories(draw: st.DrawFn) -> list[str]:
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
    found = tables(*texts)
    assert {name: ours(table) for name, table in found.tables.items()} == {
        name: laravels(name, table) for name, table in truth["tables"].items()
    }
    assert not any(table.reasons for table in found.tables.values())


def test_the_down_method_is_ignored() -> None:
    text = migration("Schema::create('a', fn (Blueprint $t) => $t->id());").replace(
        "};\n", "public function down() { Schema::drop('a'); } };\n"
    )
    [fact] = facts(text)
    assert (fact.values["action"], fact.values["table"]) == ("create", "a")
    assert set(tables(text).tables) == {"a"}


def test_a_computed_table_stays_unresolved() -> None:
    text = migration("Schema::create(config('a.table'), fn (Blueprint $t) => $t->id());")
    found = tables(text)
    assert found.tables == {}
    (evidence,) = found.unresolved
    assert evidence.fact.values["unread"] == ["the name of the table"]


def test_a_computed_column_and_a_macro_leave_the_table_incomplete() -> None:
    found = tables(
        _on("create", "a", ["$table->id();", "$table->string($this->name());"]),
        _on("create", "b", ["$table->id();", "$table->auditColumns();"]),
        _on("create", "c", ["$table->string(config('none.column'));"]),
    )
    assert found.tables["a"].reasons
    assert [*found.tables["b"].reasons] == ["auditColumns is not known"]
    assert columns(found, "c") == []
    assert [*found.tables["c"].reasons] == ["the name of a column is not known"]


def test_loops_over_constants_and_own_methods_are_followed() -> None:
    text = migration(
        "foreach (['x', 'y'] as $name) {",
        "    Schema::create($name, function ($t) use ($name) { $this->fill($t, $name); });",
        "}",
    ).replace("};\n", "private function fill($t, $n) { $t->id(); $t->string($n.'_code'); } };\n")
    found = tables(text)
    assert {name: columns(found, name) for name in found.tables} == {
        "x": ["id", "x_code"],
        "y": ["id", "y_code"],
    }


@pytest.mark.parametrize(
    "sql",
    ["ALTER TABLE `a` ADD b INT", "alter table only public.a drop column b", "RENAME TABLE a TO b"],
)
def test_a_statement_in_sql_leaves_its_table_incomplete(sql: str) -> None:
    found = tables(_on("create", "a", ["$table->id();"]), migration(f"DB::statement('{sql}');"))
    assert [*found.tables["a"].reasons] == ["SQL is not known"]
    assert len(found.tables["a"].evidence) == 2


def test_a_table_dropped_in_sql_is_gone() -> None:
    drop = migration("DB::statement('DROP TABLE IF EXISTS a; INSERT INTO b VALUES (1)');")
    assert tables(_on("create", "a", ["$table->id();"]), drop).tables == {}


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
    found = tables(text)
    assert {name: columns(found, name) for name in found.tables} == {"a": ["code"], "b": ["code"]}
    assert not any(table.reasons for table in found.tables.values())


CREATED = "Schema::create('a', function (Blueprint $t) { $t->id(); });"


def added(column: str, table: str = "a") -> str:
    return f"Schema::table('{table}', function (Blueprint $t) {{ $t->string('{column}'); }});"


@pytest.mark.parametrize(
    "body",
    [
        f"if (DB::getDriverName() === 'mysql') {{ {added('my')} }} else {{ {added('lite')} }}",
        f"switch (config('a.b')) {{ case 1: {added('my')} break; default: {added('lite')} }}",
        "Schema::table('a', fn ($t) => match (true) { 1, 2 => $t->id('my'), default => $t->id('lite') });",
        f"if ($this->done()) {{ return; }} {added('my')} {added('lite')}",
    ],
    ids=["if", "switch", "match", "return"],
)
def test_all_branches_are_applied_and_leave_the_table_incomplete(body: str) -> None:
    found = tables(migration(CREATED), migration(body))
    assert columns(found) == ["id", "my", "lite"]
    reason = next(iter(found.tables["a"].reasons))
    assert reason == "a statement depends on a condition whose value is unknown"


def test_methods_that_only_return_are_read() -> None:
    body = f"foreach ($this->all() as $name) {{ {added('code').replace(chr(39) + 'a' + chr(39), '$name')} }}"
    more = " private function all(): array { return ['a', 'b']; } };\n"
    text = migration(body).removesuffix(TAIL) + "    }\n" + more
    found = tables(migration(CREATED, CREATED.replace("'a'", "'b'")), text)
    assert columns(found) == columns(found, "b") == ["id", "code"]
    assert not found.tables["a"].reasons


def test_items_of_a_collection_and_names_in_any_case_are_read() -> None:
    each = "collect(['x', 'y'])->each(function ($n) { Schema::CREATE($n, fn ($t) => $t->ID()); });"
    found = tables(migration(each))
    assert {name: columns(found, name) for name in found.tables} == {"x": ["id"], "y": ["id"]}


NAMED = migration(
    "$names = config('access.table_names'); $columns = config('access.column_names');",
    "$key = $columns['role_pivot_key'] ?? 'role_id';",
    "Schema::create($names['roles'], function (Blueprint $t) use ($columns, $key) {",
    "  $t->id(); $t->unsignedBigInteger($key); $t->string(config('access.stem') . '_code');",
    "  $t->index([$key, $columns['morph_key']]);",
    "});",
    "Schema::create(config('other.table', 'audits'), fn (Blueprint $t) => $t->id());",
    "Schema::rename(config('access.table_names.old'), 'new');",
)
SETTINGS: Mapping[str, str] = {
    "access": """['table_names' => ['roles' => 'acl_roles', 'old' => 'acl_old'], 'teams' => false,
        'column_names' => ['role_pivot_key' => null, 'morph_key' => 'model_id'],
        'stem' => env('ACL_STEM', 'acl')]"""
}


def test_names_from_settings_are_resolved() -> None:
    old = migration("Schema::create('acl_old', fn (Blueprint $t) => $t->id());")
    found = tables(old, NAMED, **SETTINGS)
    assert set(found.tables) == {"acl_roles", "audits", "new"}
    assert columns(found, "acl_roles") == ["id", "role_id", "acl_code"]
    name, index = [*found.tables["acl_roles"].indexes.items()][-1]
    assert index == ("index", ["role_id", "model_id"])
    assert name == "acl_roles_role_id_model_id_index"
    assert not found.tables["acl_roles"].reasons


def test_missing_settings_leave_a_name_unresolved() -> None:
    found = tables(NAMED)
    assert set(found.tables) == {"audits"}
    assert [one.fact.values["unread"] for one in found.unresolved] == [
        ["the name of the table", "the name of a column"],
        ["the name of the table"],
    ]


def test_secrets_of_settings_are_not_among_facts() -> None:
    text = "<?php return ['api_token' => 'abc', 'table' => 't', 'db' => ['password' => 'hidden']];"
    (fact,) = [one for one in read(text).facts if one.kind == "configuration"]
    assert fact.values == {"values": {"table": "t"}, "untold": ["api_token", "db.password"]}


@pytest.mark.parametrize("text", ["\ue000zz\ue001", "\ue00022\ue001", "\ue0005b5d\ue001", "\ue000"])
def test_our_marks_in_a_file_name_nothing(text: str) -> None:
    found = tables(migration(f"Schema::create('{text}', fn (Blueprint $t) => $t->id());"))
    assert not found.tables or list(found.tables) == [text]


def test_methods_that_call_each_other_end() -> None:
    methods = "".join(
        f" private function m{n}() {{ return [$this->m{n + 1}(), $this->m{n + 1}()]; }}"
        for n in range(60)
    )
    text = migration("foreach ($this->m0() as $t) { Schema::drop($t); }")
    loop = " function a() { return $this->b(); } function b() { return $this->a(); }"
    whole = text.removesuffix(TAIL) + "Schema::drop($this->a()); }" + methods + loop + "};\n"
    assert tables(whole).tables == {}


def test_table_renamed_to_its_own_name_is_kept() -> None:
    found = tables(migration(CREATED), migration("Schema::rename('a', 'a');"))
    assert set(found.tables) == {"a"}


def test_renamed_column_is_renamed_in_composite_references() -> None:
    referring = """Schema::create('b', function (Blueprint $t) {
        $t->foreign(['x', 'y'])->references(['id', 'old'])->on('a');
    });"""
    renaming = "Schema::table('a', fn (Blueprint $t) => $t->renameColumn('old', 'new'));"
    found = tables(migration(CREATED, referring, added("old"), renaming))
    [key] = found.tables["b"].foreign_keys.values()
    assert key.references == ["id", "new"]


@pytest.mark.slow
def test_the_examples_tables_are_laravels() -> None:
    migrations, dumps = example_files()
    truth = schema_by_laravel(migrations, dumps)
    assert truth["failed"] == []
    found = resolve_tables(
        FileFacts(path.relative_to(EXAMPLE).as_posix(), "php", read(path.read_text("utf-8")).facts)
        for path in migrations
    )

    # Statements in SQL and dumps are not read, and leave their tables incomplete.
    complete = {name: ours(table) for name, table in found.tables.items() if not table.reasons}
    differing = {
        name: (mine, theirs)
        for name, mine in complete.items()
        if mine != (theirs := laravels(name, truth["tables"][name]))
    }
    assert differing == {}
    assert found.unresolved == ()
    assert len(complete) >= 30
