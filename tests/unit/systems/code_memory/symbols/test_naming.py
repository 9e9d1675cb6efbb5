"""Names by path: their spelling in files, their meaning, and the spellings that find them."""

from __future__ import annotations

import ast
from pathlib import Path

import django
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import build_relations
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import get_short_name
from rag_assets.systems.code_memory.symbols.naming import (
    depends_on_path,
    find_definition,
    find_go_folder,
    iter_local_names,
    iter_spellings,
    qualify_defined_name,
    resolve_spelling,
)


@pytest.mark.parametrize(
    ("spelling", "path", "name"),
    [
        (":Bill.total", "billing/models.py", "billing.models.Bill.total"),
        (":Bill", "src/billing/models/__init__.py", "src.billing.models.Bill"),
        (".models.Bill", "billing/views.py", "billing.models.Bill"),
        (".models.Bill", "billing/__init__.py", "billing.models.Bill"),
        ("..core.Base", "shop/billing/views.py", "shop.core.Base"),
        ("billing.models.Bill", "x/y.py", "billing.models.Bill"),
        (":format", "src/lib/money.ts", "src/lib/money#format"),
        ("./money#format", "src/lib/invoice.ts", "src/lib/money#format"),
        ("../lib/money#format", "src/pages/Invoice.vue", "src/lib/money#format"),
        ("./#Thing", "src/models/index.ts", "src/models#Thing"),
        ("@/lib/money#format", "src/x.ts", "@/lib/money#format"),
        ("App\\Models\\Bill", "app/x.php", "App\\Models\\Bill"),
        (":billing.Bill.Total", "internal/billing/bill.go", "internal/billing#Bill.Total"),
        (":main.run", "cmd/server/main.go", "cmd/server#run"),
        (":shop.New", "shop.go", "shop#New"),
        (":Bill.total", "src/billing/mod.rs", "src/billing#Bill.total"),
        ("./lines#count", "src/billing.rs", "src/billing/lines#count"),
        ("../store#Repo.load", "src/billing.rs", "src/store#Repo.load"),
        ("./billing#Bill", "src/main.rs", "src/billing#Bill"),
        ("Bill.total", "Sources/App/Bill.swift", "Bill.total"),
        # These leave the repository.
        ("...d.E", "a.py", ""),
        ("....d.E", "x/y/a.py", ""),
        ("../../x#f", "a.ts", ""),
    ],
)
def test_a_spelling_means_what_its_place_makes_of_it(spelling: str, path: str, name: str) -> None:
    assert resolve_spelling(spelling, path) == name


@pytest.mark.parametrize(
    ("name", "path", "defined", "wanted"),
    [
        ("billing.models.Bill", "backend/x.py", ["backend.billing.models.Bill"], 0),
        ("billing.models.Bill", "other/x.py", ["backend.billing.models.Bill"], None),
        ("billing.models.Bill", "tests/x.py", ["src.billing.models.Bill"], 0),
        ("models.Bill", "billing/x.py", ["billing.othermodels.Bill"], None),
        ("app.A", "one/x.py", ["two.app.A", "one.app.A"], 1),
        ("app.A", "one/deep/x.py", ["one.app.A", "one.deep.app.A", "app.A"], 1),
        ("os.getcwd", "tools/x.py", ["tools.os.getcwd"], None),
        ("requests.get", "x.py", ["vendor.requests.get"], None),
        ("@/lib/money#format", "web/src/pages/a.ts", ["web/src/lib/money#format"], 0),
        ("@/lib/money#format", "web/tests/a.ts", ["web/src/lib/money#format"], 0),
        ("@/lib/money#format", "web/src/a.ts", ["web/src/lib/honeymoney#format"], None),
        ("called:bill.total", "docs/a.md", ["a.Bill.total"], 0),
        ("called:bill.total", "docs/a.md", ["a.Bill.total", "b.Bill.total"], None),
    ],
)
def test_a_name_from_some_root_means_what_lies_below_the_nearest(
    name: str, path: str, defined: list[str], wanted: int | None
) -> None:
    assert depends_on_path(name)
    assert find_definition(name, path, defined) == (None if wanted is None else defined[wanted])


@pytest.mark.parametrize(
    ("name", "user", "defined", "wanted"),
    [
        ("Orders", "Shop::Api::Cart", ["Shop::Data::Orders"], 0),
        ("Orders", "Shop::Api::Cart", ["Shop::Data::Orders", "Shop::Orders"], 1),
        ("Orders", "Shop::Api::Cart", ["Shop::Api::Data::Orders", "Bank::Data::Orders"], 0),
        ("Orders", "Shop::Api::Cart", ["Shop::Data::Orders", "Shop::Core::Orders"], None),
        ("Orders", "Shop::Orders", ["Shop::Orders", "Orders"], 1),
        ("Orders", "Shop::Orders", ["Shop::Orders"], None),
        ("Data::Orders", "Cart", ["Shop::Data::Orders", "Orders"], 0),
        ("ActiveRecord::Base", "User", ["Admin::Base"], None),
        ("Base", "User", ["a.Base", "lib/Base", "x#Base", "Database", "Base::get"], None),
    ],
)
def test_the_nearest_type_with_the_written_name_is_meant(
    name: str, user: str, defined: list[str], wanted: int | None
) -> None:
    expected = None if wanted is None else defined[wanted]
    assert find_definition(f"scoped:{name}", user, defined) == expected
    if expected is not None:
        assert f"scoped:{name}" in iter_spellings(expected, get_short_name(expected))


def test_an_anonymous_class_is_already_distinguished_by_its_file() -> None:
    assert not depends_on_path("repo/database/migrations/2024_a.php#class@4::up")


def test_files_of_several_roots_have_names_of_their_own() -> None:
    paths = ["src/a.py", "lib/a.py", "a.py", "src/a.ts", "a.ts", "src/a.js.ts"]
    assert len({qualify_defined_name("I", path) for path in paths}) == len(paths)


def test_a_folder_is_named_by_its_dots() -> None:
    name = qualify_defined_name("f", "src/lib/index.ts")
    assert resolve_spelling("./#f", "src/lib/x.ts") == name
    assert resolve_spelling("../#f", "src/lib/deep/x.ts") == name
    assert {"./#f", "../#f"} <= set(iter_spellings(name, "f"))


PARTS = st.lists(st.sampled_from(["shop", "core", "api", "models"]), min_size=1, max_size=4)
LOCAL = st.sampled_from(["Bill", "Bill.total", "helper"])


@given(at=PARTS, near=PARTS, local=LOCAL, level=st.integers(1, 5))
def test_every_spelling_that_means_a_name_finds_it(
    at: list[str], near: list[str], local: str, level: int
) -> None:
    path, other = "/".join(at) + "/a.py", "/".join(near) + "/b.py"
    name = qualify_defined_name(local, path)
    assert local in set(iter_local_names(name))
    found = set(iter_spellings(name, get_short_name(name)))
    assert name in found
    assert resolve_spelling(f":{local}", path) == name
    assert f":{local}" in found
    package = near[: len(near) - level + 1]
    if level <= len(near) and at[: len(package)] == package:
        rest = ".".join([*at[len(package) :], "a", local])
        relative = "." * level + rest
        assert resolve_spelling(relative, other) == name
        assert relative in found


@given(at=PARTS, local=LOCAL)
def test_modules_of_javascript_are_found_from_any_folder_above(at: list[str], local: str) -> None:
    name = qualify_defined_name(local, "/".join(at) + "/money.ts")
    found = set(iter_spellings(name, get_short_name(name)))
    for depth in range(len(at)):
        importer = "/".join([*at[: len(at) - depth], "x.ts"])
        rest = "/".join([*at[len(at) - depth :], "money"])
        assert resolve_spelling(f"./{rest}#{local}", importer) == name
        assert f"./{rest}#{local}" in found
        assert f"@/{rest}#{local}" in found


@pytest.mark.slow
def test_imports_of_a_real_package_mean_what_its_files_say() -> None:
    root = Path(django.__file__).parent
    folders = [root / one for one in ("forms", "views", "urls", "template")]
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    checked = 0
    for file in files:
        text = file.read_text()
        path = f"django/{file.relative_to(root).as_posix()}"
        edges = build_relations(read_code(text, "text/x-python").facts, names="python").edges
        found = {resolve_spelling(e.target, path) for e in edges if e.kind == "imports"}
        package = path.removesuffix(".py").removesuffix("/__init__").split("/")
        inner = package if file.name == "__init__.py" else package[:-1]
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                above = inner[: len(inner) - node.level + 1] if node.level else []
                module = ".".join([*above, *filter(None, [node.module])])
                wanted = {f"{module}.{name.name}" for name in node.names if name.name != "*"}
                assert wanted <= found, (path, wanted - found)
                checked += len(wanted)
    assert checked > 500


JAVA = """package org.shop.bill;
import io.money.Money;
import java.util.*;
import static org.shop.Texts.join;
public class Bill extends Paper implements Priced {
  private final Lines lines;
  public Money total() { this.lines.sum(); helper(); join("x"); return Money.of(1); }
  private void helper() { new Line(); }
}
"""


def test_types_of_java_that_no_import_names_are_of_the_package() -> None:
    found = build_relations(read_code(JAVA, "text/x-java").facts, names="java").edges
    bill = "org.shop.bill.Bill"
    assert {(one.kind, one.source, one.target) for one in found} == {
        ("imports", "", "io.money.Money"),
        ("imports", "", "org.shop.Texts.join"),
        ("extends", bill, "org.shop.bill.Paper"),
        ("implements", bill, "org.shop.bill.Priced"),
        ("member_of", f"{bill}.total", bill),
        ("member_of", f"{bill}.helper", bill),
        ("calls", f"{bill}.total", "org.shop.bill.Lines.sum"),
        ("calls", f"{bill}.total", f"{bill}.helper"),
        ("calls", f"{bill}.total", "org.shop.Texts.join"),
        ("calls", f"{bill}.total", "io.money.Money.of"),
        ("calls", f"{bill}.helper", "org.shop.bill.Line"),
    }


def test_a_package_of_java_may_be_called_like_a_module_of_python() -> None:
    assert find_definition("io.money.Money", "src/A.java", ["io.money.Money"]) == "io.money.Money"
    assert find_definition("io.money.Money", "src/a.py", ["io.money.Money"]) is None


def test_facts_of_files_without_a_style_make_no_edges_by_name() -> None:
    text = 'package main\nimport "fmt"\nfunc main() { fmt.Println() }\n'
    facts = FileFacts("main.go", "go", read_code(text, "text/x-go").facts).facts
    assert build_relations(facts, names="none").edges == ()


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("github.com/acme/shop/internal/tax", "internal/tax"),
        ("github.com/acme/shop/v2/store", "store"),
        ("example.com/shop/store", "store"),
        ("github.com/gin-gonic/gin", "gin"),
        ("net/http", ""),
    ],
)
def test_import_paths_of_go_tell_the_folder_of_a_package(path: str, folder: str) -> None:
    assert find_go_folder(path) == folder


@given(at=PARTS, local=LOCAL)
def test_names_of_go_and_rust_are_found_by_their_local_names(at: list[str], local: str) -> None:
    folder = "/".join(at)
    go, own = f"{folder}/bill.go", f"{at[-1]}.{local}"
    name = qualify_defined_name(own, go)
    assert own in set(iter_local_names(name))
    assert resolve_spelling(f":{own}", go) == name
    assert {f":{own}", f"{at[-1]}#{local}", name} <= set(iter_spellings(name, get_short_name(name)))
    rust, own = f"{folder}/bill.rs", local.replace(".", "::")
    name = qualify_defined_name(own, rust)
    assert own in set(iter_local_names(name))
    assert resolve_spelling(f":{local}", rust) == name
    found = set(iter_spellings(name, get_short_name(name)))
    assert {f":{local}", f"./bill#{local}", f"../bill#{local}", f"@/bill#{local}"} <= found
