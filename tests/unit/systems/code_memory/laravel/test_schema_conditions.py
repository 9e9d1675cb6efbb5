"""Branches, loops and settings in migrations."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.laravel.schema.tables import MigratedTables, resolve_tables
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.test_schema_reader import (
    TAIL,
    migration,
)

CREATED = "Schema::create('a', function (Blueprint $t) { $t->id(); });"


def added(column: str, table: str = "a") -> str:
    return f"Schema::table('{table}', function (Blueprint $t) {{ $t->string('{column}'); }});"


def tables(*texts: str, **files: str) -> MigratedTables:
    """Return the tables of migrations, in order, with files of settings by name."""
    given = {f"database/migrations/2024_01_{n:02}_000000_step.php": t for n, t in enumerate(texts)}
    given |= {f"config/{name}.php": f"<?php return {text};" for name, text in files.items()}
    facts = [FileFacts(path, "php", read(text).facts) for path, text in given.items()]
    return resolve_tables(facts)


def columns(found: MigratedTables, table: str = "a") -> list[str]:
    return [*found.tables[table].columns]


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
    assert next(iter(found.tables["a"].reasons)) == (
        "a statement depends on a condition whose value is unknown"
    )


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


def test_names_that_settings_give_are_those_of_the_repository() -> None:
    old = migration("Schema::create('acl_old', fn (Blueprint $t) => $t->id());")
    found = tables(old, NAMED, **SETTINGS)

    assert set(found.tables) == {"acl_roles", "audits", "new"}
    assert columns(found, "acl_roles") == ["id", "role_id", "acl_code"]
    name, index = [*found.tables["acl_roles"].indexes.items()][-1]
    assert index == ("index", ["role_id", "model_id"])
    assert name == "acl_roles_role_id_model_id_index"
    assert not found.tables["acl_roles"].reasons


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
    assert [*found.tables["a"].reasons] == ["the name of a column is not known"]


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
