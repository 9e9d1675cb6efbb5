"""The view of a tenant's relations: common names, and re-exports."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rag_assets.ingest.chunking.chunk_set import locate_facts
from rag_assets.ingest.sources.model import build_uri
from rag_assets.systems.code_memory.catalog.found_relations import (
    Direction,
    FoundEdge,
    FoundNameUses,
    FoundSymbol,
    NamesByRepository,
    iter_source_spellings,
    iter_target_spellings,
    qualify_definition,
    qualify_name,
)
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import build_relations
from rag_assets.systems.code_memory.retrieval import uses
from rag_assets.systems.code_memory.retrieval.nodes import build_node
from rag_assets.systems.code_memory.retrieval.uses import find_uses_of_nodes
from rag_assets.systems.code_memory.retrieval.view import NameLookup, Reexports, RelationView
from rag_assets.systems.code_memory.symbols.model import NameUse, NameUses
from rag_assets.systems.code_memory.symbols.names import FILE, get_short_name

FILES = 30


def _symbol(number: int) -> FoundSymbol:
    name, uri = f"app.v{number}.View{number}.get", f"repo/app/v{number}.py"
    place = (f"d{number}", uri, "repo", "s", "code")
    return FoundSymbol(name, "method", True, 1, 3, "hash", *place, {}, name)


def _view() -> RelationView:
    symbols = {f"repo/app/v{number}.py": _symbol(number) for number in range(FILES)}
    rows = [
        FoundNameUses("get", "", symbol.document_id, uri, "repo", "s", "code")
        for uri, symbol in symbols.items()
    ]
    view: Any = SimpleNamespace(
        find_name_uses=lambda *_: (rows, False),
        list_definitions=lambda uris: [symbols[uri] for uri in uris],
        find_edges_of_names=lambda *_: SimpleNamespace(edges=()),
        find_scip_edges=lambda _: (),
        find_implementations=lambda *_: (),
    )
    return cast("RelationView", view)


def test_receivers_named_after_the_class_are_certain_at_the_cost_of_one_comparison(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = 0
    get_owner = uses._get_owner

    def counted(name: str) -> str:
        nonlocal calls
        calls += 1
        return get_owner(name)

    receivers = ("view3", "other", "view4")
    places = NameUses(tuple(NameUse("call", 5 + at, name) for at, name in enumerate(receivers)))
    monkeypatch.setattr(uses, "parse_uses", lambda _: places)
    monkeypatch.setattr(uses, "_get_owner", counted)
    monkeypatch.setattr(uses._UseResolver, "_get_rank_key", lambda *_: (0, 0, 0))
    found = find_uses_of_nodes(_view(), [build_node(_symbol(3))])
    assert {(use.receiver, use.why) for use in found.certain} == {("view3", "receiver")}
    assert {use.receiver for use in found.possible} == {"other", "view4"}
    assert {use.candidates for use in found.possible} == {FILES}
    assert calls <= FILES + 5


REPOSITORY = "repo"
STYLES = {
    ".py": ("python", "text/x-python"),
    ".ts": ("javascript", "text/x-typescript"),
    ".mjs": ("javascript", "text/x-javascript"),
    ".js": ("javascript", "text/x-javascript"),
    ".rs": ("rust", "text/x-rust"),
}


class Files:
    """Definitions and exports of some files, as in the catalog."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.names: dict[str, set[str]] = {}
        self.rows: list[tuple[str, str, FoundEdge]] = []
        for path, text in files.items():
            self._read(path, text)

    def _read(self, path: str, text: str) -> None:
        style, media_type = STYLES[Path(path).suffix]
        facts = locate_facts(read_code(text, media_type).facts, text)
        relations = build_relations(facts, names=style)  # type: ignore[arg-type]
        uri = build_uri(REPOSITORY, path)
        for symbol in relations.symbols:
            self.names.setdefault(symbol.short, set()).add(qualify_definition(symbol.name, uri))
        for edge in relations.edges:
            found = FoundEdge(
                edge.kind,
                qualify_name(edge.source, uri),
                qualify_name(edge.target, uri),
                *("stated", 1.0, 1, 1, "", None, "id", uri, REPOSITORY, "public", 0),
            )
            self.rows.append((edge.source, edge.target, found))

    def edges(self, names: Sequence[str], way: Direction) -> list[FoundEdge]:
        spelled = iter_source_spellings if way == "out" else iter_target_spellings
        wanted = {one for name in names for one in spelled(name)}
        at = 0 if way == "out" else 1
        return [row[2] for row in self.rows if row[at] in wanted]

    @property
    def defined(self) -> set[str]:
        return set().union(*self.names.values())

    def called(self, shorts: Collection[str]) -> dict[str, NamesByRepository]:
        return {short: {REPOSITORY: self.names[short]} for short in shorts if short in self.names}

    @property
    def reexports(self) -> Reexports:
        return Reexports(self.edges, self.called)

    def means(self, name: str, path: str) -> str | None:
        """Return the definition behind a name that a file imports."""
        sought = NameLookup(REPOSITORY, name, path)
        return self.reexports.find_definitions([sought]).get(sought)


PYTHON = {
    "shop/__init__.py": "from .billing import Bill, rate as tax_rate\nfrom .store import *\n",
    "shop/billing/__init__.py": (
        "from .models import Bill\nfrom .rates import *\nfrom shop.billing import models as data\n"
        "__all__ = ['Bill', 'rate']\n"
    ),
    "shop/billing/models.py": "class Bill:\n    def total(self): ...\n",
    "shop/billing/rates.py": "def rate(): ...\ndef _hidden(): ...\n",
    "shop/store.py": "from .around import Loop\nclass Store: ...\n",
    "shop/around.py": "from .store import Loop\n",
}
SCRIPT = {
    "web/src/lib/index.ts": (
        "export * from './money'\nexport { Bill as Invoice } from '@/models/bill'\n"
        "export * as shapes from './shapes'\nimport { deep } from './deep'\nexport { deep }\n"
        "export { default as Button } from './Button'\n"
    ),
    "web/src/lib/money.ts": "export function format() {}\n",
    "web/src/lib/shapes.ts": "export function square() {}\n",
    "web/src/lib/deep/index.ts": "export * from './deepest'\n",
    "web/src/lib/deep/deepest.ts": "export * from '../deep'\nexport const deep = () => 1\n",
    "web/src/lib/Button.ts": "class Fancy {}\nexport default Fancy\n",
    "web/src/models/bill.ts": "export class Bill { total() {} }\n",
}
RUST = {
    "src/lib.rs": (
        "pub mod tax;\npub use crate::tax::{Rule, Other as Another};\npub use tax::deep::*;\n"
    ),
    "src/tax/mod.rs": (
        "pub mod deep;\npub struct Rule;\nimpl Rule { pub fn new() {} }\npub struct Other;\n"
    ),
    "src/tax/deep.rs": "pub struct Deep;\n",
}
CASES = [
    (PYTHON, "shop.Bill", "app.py", "shop.billing.models.Bill"),
    (PYTHON, "shop.Bill.total", "app.py", "shop.billing.models.Bill.total"),
    (PYTHON, "shop.billing.rate", "shop/x.py", "shop.billing.rates.rate"),
    (PYTHON, "shop.tax_rate", "app.py", "shop.billing.rates.rate"),
    (PYTHON, "shop.Store", "app.py", "shop.store.Store"),
    (PYTHON, "shop.billing._hidden", "app.py", None),
    (PYTHON, "shop.billing.data.Bill", "app.py", "shop.billing.models.Bill"),
    (PYTHON, "shop.store.Loop", "app.py", None),
    (PYTHON, "shop.Nothing", "app.py", None),
    (SCRIPT, "@/lib#format", "web/src/a.ts", "web/src/lib/money#format"),
    (SCRIPT, "web/src/lib#Invoice", "web/src/a.ts", "web/src/models/bill#Bill"),
    (SCRIPT, "@/lib#Invoice.total", "web/src/a.ts", "web/src/models/bill#Bill.total"),
    (SCRIPT, "@/lib#shapes.square", "web/src/a.ts", "web/src/lib/shapes#square"),
    (SCRIPT, "@/lib#deep", "web/src/a.ts", "web/src/lib/deep/deepest#deep"),
    (SCRIPT, "@/lib#Button", "web/src/a.ts", "web/src/lib/Button#Fancy"),
    (SCRIPT, "web/src/lib/Button#Button", "web/src/a.ts", "web/src/lib/Button#Fancy"),
    (SCRIPT, "@/lib#square", "web/src/a.ts", None),
    (RUST, "@/src#Rule.new", "src/main.rs", "src/tax#Rule.new"),
    (RUST, "@/src#Another", "src/main.rs", "src/tax#Other"),
    (RUST, "@/src#Deep", "src/main.rs", "src/tax/deep#Deep"),
]


@pytest.mark.parametrize(("files", "name", "path", "meant"), CASES)
def test_a_reexported_name_leads_to_its_definition(
    files: Mapping[str, str], name: str, path: str, meant: str | None
) -> None:
    found = Files(files)
    assert found.means(name, path) == meant
    if meant is not None:
        others = found.reexports.list_other_names([meant])
        assert any(
            found.means(other, path) == meant and other.endswith(name.lstrip("@/"))
            for other in others
        ), others


@pytest.mark.slow
@pytest.mark.parametrize("package", ["click", "jinja2", "pydantic", "hypothesis"])
def test_reexports_of_real_packages_are_those_of_python(package: str) -> None:
    module = importlib.import_module(package)
    root = Path(module.__path__[0])
    texts = {str(one.relative_to(root.parent)): one.read_text() for one in root.rglob("*.py")}
    files = Files(texts)
    known = files.defined
    right, wrong = 0, []
    for name in getattr(module, "__all__", ()) or dir(module):
        value = getattr(module, name, None)
        home, own = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        truth = f"{home}.{own}"
        if not isinstance(home, str) or truth not in known or truth == f"{package}.{name}":
            continue
        found = files.means(f"{package}.{name}", "app.py")
        right += found == truth
        wrong += [] if found == truth else [(found, truth)]
    assert right >= 3
    assert not wrong


LISTED = {
    "plainly": "__all__ = ['Bill', '_kept']\n",
    "tuple": "__all__ = 'Bill', 'log'\n",
    "added": "__all__ = ['Bill']\n__all__ += ('_kept',)\n",
    "sum": "__all__ = (\n    ['Bill']  # the first\n    + ['l' 'og']\n)\n",
    "called": "__all__: list[str] = []\n__all__.append('log')\n__all__.extend(['Bill'])\n",
    "again": "__all__ = ['log']\n__all__ = ['Bill']\n",
    "nothing": "__all__ = []\n",
    "computed": "__all__ = [name for name in ('Bill', 'log')]\n",
    "none": "",
    "through": "from .inner import *\n__all__ = ['Bill', 'tax']\n",
    "unlisted": "from .inner import *\n",
}
"""Modules that differ in what they give by `*`: each has Bill, log and _kept besides."""


def run_beside(files: Mapping[str, str], folder: Path, *command: str) -> dict[str, str]:
    """Return the JSON that a command prints in a folder with these files."""
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("form", LISTED)
def test_a_starred_import_has_the_names_of_python(form: str, tmp_path: Path) -> None:
    own = "class Bill: ...\ndef log(): ...\ndef _kept(): ...\n"
    files = {
        "given/__init__.py": f"from .{form} import *\n",
        f"given/{form}.py": LISTED[form] + own,
        "given/inner.py": "__all__ = ['tax', 'rate', 'Bill']\n"
        "def tax(): ...\ndef rate(): ...\ndef rest(): ...\nclass Bill: ...\n",
    }
    script = (
        "import json, given; print(json.dumps({name: f'{one.__module__}.{name}'"
        " for name, one in vars(given).items() if callable(one)}))"
    )
    given = run_beside(files, tmp_path, sys.executable, "-c", script)
    found = Files(files)
    names = ("Bill", "log", "_kept", "tax", "rate", "rest")
    # A list that is computed limits nothing: what it has is not known.
    wanted = {name: given.get(name) for name in names}
    assert {name: found.means(f"given.{name}", "app.py") for name in names} == wanted
    assert found.means("given.__all__", "app.py") is None


@pytest.mark.slow
def test_starred_imports_of_a_real_package_are_those_of_python() -> None:
    module = importlib.import_module("httpx")
    root = Path(module.__path__[0])
    texts = {str(one.relative_to(root.parent)): one.read_text() for one in root.glob("*.py")}
    files = Files(texts)
    starred = re.findall(r"^from \.(\w+) import \*", texts["httpx/__init__.py"], re.MULTILINE)
    given: dict[bool, int] = {True: 0, False: 0}
    for one in sorted(files.defined):
        package, _, own = one.partition(".")
        inner, _, name = own.partition(".")
        if inner not in starred or not name or "." in name:
            continue
        truth = getattr(importlib.import_module(f"httpx.{inner}"), name)
        is_given = getattr(module, name, None) is truth
        assert (files.means(f"{package}.{name}", "app.py") == one) == is_given, one
        given[is_given] += 1
    assert min(given.values()) > 10


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_modules_export_what_node_finds(tmp_path: Path) -> None:
    files = {
        "lib/index.mjs": (
            "export * from './money.mjs'\nexport * as shapes from './shapes.mjs'\n"
            "export { square as quadrat, default as Fallback } from './shapes.mjs'\n"
            "import { cent } from './money.mjs'\nexport { cent as penny }\n"
        ),
        "lib/money.mjs": "export function format() {}\nexport const cent = () => 1\n",
        "lib/shapes.mjs": "export function square() {}\nexport default function Circle() {}\n",
    }
    script = (
        "const all = await import('./lib/index.mjs'); const found = {};"
        "for (const [k, v] of Object.entries(all)) if (typeof v === 'function') found[k] = v.name;"
        "console.log(JSON.stringify(found))"
    )
    exported = run_beside(files, tmp_path, "node", "--input-type=module", "-e", script)
    assert len(exported) == 5
    found = Files(files)
    for name, own in exported.items():
        meant = found.means(f"lib/index#{name}", "app.mjs") or found.means(f"lib#{name}", "app.mjs")
        assert meant is not None, name
        assert meant.rpartition("#")[2] == own


def test_names_of_files_and_documents_are_not_looked_up() -> None:
    found = Files(PYTHON)
    names = [f"{FILE}repo/shop/x.py", "App\\Models\\Bill", "table:bills", "config:a.b"]
    assert found.reexports.list_other_names(names) == []
    assert get_short_name("as::Bill") == "bill"
