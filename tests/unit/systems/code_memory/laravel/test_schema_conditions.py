"""Branches of migrations by driver, table, column and setting, judged by Laravel itself."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.laravel.schema.tables import Tables, resolve_tables
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.sqlite_tables import laravels, ours
from tests.unit.systems.code_memory.laravel.test_schema_reader import (
    TAIL,
    migration,
    said_by_laravel,
)

CREATED = "Schema::create('a', function (Blueprint $t) { $t->id(); });"


def added(column: str, table: str = "a") -> str:
    return f"Schema::table('{table}', function (Blueprint $t) {{ $t->string('{column}'); }});"


def tables(*texts: str, driver: str | None = None, **files: str) -> Tables:
    """The tables of migrations, in order, beside files of settings by name."""
    given = {f"database/migrations/2024_01_{n:02}_000000_step.php": t for n, t in enumerate(texts)}
    given |= {f"config/{name}.php": f"<?php return {text};" for name, text in files.items()}
    facts = [FileFacts(path, "php", read(text).facts) for path, text in given.items()]
    return resolve_tables(facts, driver=driver)


def columns(found: Tables, table: str = "a") -> list[str]:
    return [column.name for column in found.tables[table].columns]


BRANCHES = {
    "a comparison": f"if (DB::getDriverName() === 'mysql') {{ {added('my')} }} else {{ {added('lite')} }}",
    "a negation": f"if (! (DB::connection()->getDriverName() != 'sqlite')) {{ {added('lite')} }}",
    "a return": f"if (DB::getDriverName() === 'sqlite') {{ {added('lite')} return; }} {added('my')}",
    "a variable": f"$driver = Schema::getConnection()->getDriverName(); if ($driver === 'sqlite') {{ return; }} {added('my')}",
    "a condition in a variable": f"$lite = DB::getDriverName() === 'sqlite'; if (! $lite) {{ {added('my')} }}",
    "a list": f"if (in_array(DB::getDriverName(), ['mysql', 'mariadb'])) {{ {added('my')} }}",
    "either of two": f"if (DB::getDriverName() === 'mysql' || DB::getDriverName() === 'sqlite') {{ {added('both')} }}",
    "neither of two": f"if (! (DB::getDriverName() === 'mysql' || ! Schema::hasTable('b'))) {{ {added('not')} }}",
    "else if": f"if (DB::getDriverName() === 'mysql') {{ {added('my')} }} elseif (Schema::hasColumn('a', 'id')) {{ {added('lite')} }} else {{ {added('pg')} }}",
    "switch": f"""switch (DB::getDriverName()) {{
        case 'mysql': {added('my')} break;
        case 'pgsql': case 'sqlite': {added('lite')} break;
        default: {added('other')}
    }}""",
    "a case that falls through": f"""switch (DB::getDriverName()) {{
        case 'sqlite': {added('first')}
        case 'mysql': {added('second')} break;
        default: {added('other')}
    }}""",
    "match": """Schema::table('a', function (Blueprint $t) {
        match (DB::getDriverName()) {
            'mysql', 'mariadb' => $t->json('my')->nullable(),
            'sqlite' => $t->text('lite')->nullable(),
            default => $t->string('other'),
        };
    });""",
    "the driver by PDO": f"if (DB::connection()->getPdo()->getAttribute(PDO::ATTR_DRIVER_NAME) == 'mysql') {{ {added('my')} }}",
    "within a table": """Schema::table('a', function (Blueprint $t) {
        if (DB::getDriverName() !== 'sqlite') { $t->string('my'); } else { $t->string('lite'); }
    });""",
    "names in any case": "Schema::TABLE('a', function (Blueprint $t) { $t->datetime('one')->nullable(); $t->TinyText('two')->NULLABLE(); });",
    "a collection": "collect(['x', 'y'])->each(function ($name) { Schema::create($name, fn (Blueprint $t) => $t->id()); });",
    "columns that are there": f"if (Schema::hasColumns('a', ['id', 'name'])) {{ {added('not')} }}",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("body", BRANCHES.values(), ids=list(BRANCHES))
def test_the_branch_is_the_one_that_laravel_takes(tmp_path: Path, body: str) -> None:
    texts = [migration(CREATED), migration(body)]
    truth = said_by_laravel(tmp_path, texts)

    found = tables(*texts, driver="sqlite")

    assert {name: ours(table) for name, table in found.tables.items()} == {
        name: laravels(name, table) for name, table in truth["tables"].items()
    }
    assert all(table.complete for table in found.tables.values())


@pytest.mark.slow
def test_methods_that_only_return_are_asked(tmp_path: Path) -> None:
    body = f"""foreach ($this->all() as $name) {{ {added("code").replace("'a'", "$name")} }}
        if ($this->uses()) {{ {added("lite")} }} if (! $this->uses()) {{ {added("my")} }}"""
    more = """ private function all(): array { return ['a', 'b']; }
        private function uses() { return DB::getDriverName() === 'sqlite'; } };\n"""
    both = [migration(CREATED, CREATED.replace("'a'", "'b'"))]
    texts = [*both, migration(body).removesuffix(TAIL) + "    }\n" + more]
    truth = said_by_laravel(tmp_path, texts)

    found = tables(*texts, driver="sqlite")

    assert columns(found) == ["id", "code", "lite"]
    assert {name: ours(table) for name, table in found.tables.items()} == {
        name: laravels(name, table) for name, table in truth["tables"].items()
    }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("['default' => env('DB_CONNECTION', 'sqlite')]", ["id", "lite"]),
        ("['default' => 'main', 'connections' => ['main' => ['driver' => 'mysql']]]", ["id", "my"]),
    ],
    ids=["default", "driver of a connection"],
)
def test_the_driver_is_the_one_of_the_default_connection(
    settings: str, expected: list[str]
) -> None:
    body = BRANCHES["a comparison"]
    assert columns(tables(migration(CREATED), migration(body), database=settings)) == expected


def test_without_a_known_driver_all_branches_are_told_with_the_reason() -> None:
    found = tables(migration(CREATED), migration(BRANCHES["a comparison"]))
    assert columns(found) == ["id", "my", "lite"]
    assert found.tables["a"].reasons == ("a statement runs under a condition that is not known",)


NAMED = migration(
    "$names = config('access.table_names'); $columns = config('access.column_names');",
    "$key = $columns['role_pivot_key'] ?? 'role_id';",
    "Schema::create($names['roles'], function (Blueprint $t) use ($columns, $key) {",
    "  $t->id(); $t->unsignedBigInteger($key); $t->string(config('access.stem') . '_code');",
    "  if (config('access.teams') || config('access.testing')) { $t->integer('team'); }",
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


def test_names_that_settings_give_are_those_of_the_repository() -> None:
    old = migration("Schema::create('acl_old', fn (Blueprint $t) => $t->id());")
    found = tables(old, NAMED, **SETTINGS)

    assert set(found.tables) == {"acl_roles", "audits", "new"}
    assert columns(found, "acl_roles") == ["id", "role_id", "acl_code"]
    index = found.tables["acl_roles"].indexes[-1]
    assert index.columns == ("role_id", "model_id")
    assert index.name == "acl_roles_role_id_model_id_index"
    assert found.tables["acl_roles"].complete


def test_settings_that_are_not_told_leave_a_name_unresolved() -> None:
    found = tables(NAMED)

    assert set(found.tables) == {"audits"}
    assert [one.fact.values["unread"] for one in found.unresolved] == [
        ["the name of the table", "the name of a column"],
        ["the name of the table"],
    ]


def test_a_column_of_an_unknown_name_leaves_the_table_incomplete() -> None:
    text = "Schema::create('a', fn (Blueprint $t) => $t->string(config('none.column')));"
    found = tables(migration(text))
    assert columns(found) == []
    assert found.tables["a"].reasons == ("the name of a column is not known",)


def test_secrets_of_settings_are_not_among_facts() -> None:
    text = "<?php return ['api_token' => 'abc', 'table' => 't', 'db' => ['password' => 'hidden']];"
    (fact,) = [one for one in read(text).facts if one.kind == "configuration"]
    assert fact.values == {"values": {"table": "t"}, "untold": ["api_token", "db.password"]}


@pytest.mark.parametrize("text", ["\ue000zz\ue001", "\ue00022\ue001", "\ue0005b5d\ue001", "\ue000"])
def test_marks_that_a_file_has_by_itself_name_nothing(text: str) -> None:
    found = tables(migration(f"Schema::create('{text}', fn (Blueprint $t) => $t->id());"))
    assert not found.tables or list(found.tables) == [text]


def test_methods_that_ask_each_other_end() -> None:
    methods = "".join(
        f" private function m{n}() {{ return [$this->m{n + 1}(), $this->m{n + 1}()]; }}"
        for n in range(60)
    )
    text = migration("foreach ($this->m0() as $t) { Schema::drop($t); }")
    loop = (
        " private function a() { return $this->b(); } private function b() { return $this->a(); }"
    )
    whole = text.removesuffix(TAIL) + "if ($this->a()) { } }" + methods + loop + "};\n"
    assert tables(whole).tables == {}
