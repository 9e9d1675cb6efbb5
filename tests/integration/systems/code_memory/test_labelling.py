"""Labels of source code follow from other files, and few files are read again for them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import NoReturn

import pytest

from rag_assets.ingest.chunking.model import Fact
from rag_assets.storage.lake.store import TenantLake
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from tests.driving import Driver, tenant_named_after
from tests.installation import FAST, Installation

MODEL = "\\Illuminate\\Database\\Eloquent\\Model"
BASE = (
    "<?php\nnamespace App\\Shop;\nclass Base extends {}\n"
    "{{\n    public function f() {{ return {}; }}\n}}\n"
)
CHILD = "<?php\nnamespace App\\Shop;\nclass Bill extends Base {}\n"
OTHER = "<?php\nnamespace App\\Shop;\nclass Rates { public function rate() { return 1; } }\n"


@pytest.fixture
def made(shared_installation: Installation, request: pytest.FixtureRequest) -> tuple[str, Path]:
    tenant = tenant_named_after(request)
    root = shared_installation.home.parent / "sources" / tenant
    root.mkdir(parents=True)
    (root / "Base.php").write_text(BASE.format(MODEL, 1))
    (root / "Bill.php").write_text(CHILD)
    (root / "Rates.php").write_text(OTHER)
    (root / "README.md").write_text("# Shop\n\nSells.\n")
    source = {"name": "repo", "root": str(root), "include": ["**/*.php", "**/*.md"]}
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[source],
    )
    return tenant, root


def labels(driver: Driver, tenant: str) -> dict[str, str]:
    """Return the labels of classes by name, which catalog and serving build must agree on."""
    with driver.locked(tenant) as ctx:
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        documents = list(get_code_catalog(ctx.catalog).kinds.iter_indexed(tenant, serving.number))
        return {symbol: kind for document in documents for symbol, kind in document.kinds.items()}


@pytest.fixture
def texts_read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Record the chunk_set_keys of the texts whose facts are read from the lake."""
    keys: set[str] = set()
    facts = TenantLake.facts

    def counted(
        lake: TenantLake, wanted: Collection[str], *rest: Callable[[str], bool]
    ) -> dict[str, tuple[Fact, ...]]:
        keys.update(wanted)
        return facts(lake, wanted, *rest)

    monkeypatch.setattr(TenantLake, "facts", counted)
    return keys


def test_what_decides_nothing_reads_no_other_file(
    made: tuple[str, Path], driver: Driver, texts_read: set[str]
) -> None:
    tenant, root = made
    driver.sync(tenant)
    known = labels(driver, tenant)
    assert known == {"App\\Shop\\Base": "model", "App\\Shop\\Bill": "model"}
    texts_read.clear()
    (root / "Base.php").write_text(BASE.format(MODEL, 1) + "// Sells.\n")
    (root / "Rates.php").write_text(OTHER + "// Sells.\n")
    (root / "README.md").write_text("# Shop\n\nSells more.\n")
    done = driver.sync(tenant)
    assert labels(driver, tenant) == known
    assert not done["derived"]
    assert 3 <= len(texts_read) <= 6, "the new and the former texts of the edited files"
    # The model is derived from its line, which moves.
    texts_read.clear()
    (root / "Base.php").write_text("\n" + BASE.format(MODEL, 1))
    assert driver.sync(tenant)["derived"]
    assert len(texts_read) >= 4, "of all files"


@pytest.mark.parametrize("step", ["base", "new", "gone"])
def test_what_decides_is_worked_out_over_all_files(
    made: tuple[str, Path], driver: Driver, step: str
) -> None:
    tenant, root = made
    driver.sync(tenant)
    if step == "base":
        (root / "Base.php").write_text(BASE.format("Other", 1))
        expected = {}
    elif step == "new":
        (root / "Note.php").write_text(CHILD.replace("Bill", "Note"))
        expected = dict.fromkeys(("App\\Shop\\Base", "App\\Shop\\Bill", "App\\Shop\\Note"), "model")
    else:
        (root / "Base.php").unlink()
        expected = {}
    driver.sync(tenant, allow_deletes=True)
    driver.sync(tenant)
    assert labels(driver, tenant) == expected


def test_labels_of_a_run_that_died_are_taken_back(
    made: tuple[str, Path], driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, root = made
    driver.sync(tenant)
    known = labels(driver, tenant)
    (root / "Base.php").write_text(BASE.format("Other", 1))

    def killed(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("rag_assets.pipeline.publishing.list_complete_versions", killed)
        with pytest.raises(KeyboardInterrupt):
            driver.sync(tenant)
    assert labels(driver, tenant) == {}, "of the files that the build would have had"
    (root / "Base.php").write_text(BASE.format(MODEL, 1))
    driver.sync(tenant)
    driver.sync(tenant)
    assert labels(driver, tenant) == known


PLAIN = "<?php\nnamespace Shop;\nclass Cart { public function total() { return 1; } }\n"
ROUTES = "from flask import Flask\napp = Flask(__name__)\n\n@app.get('/carts')\ndef carts(): ...\n"


def test_a_file_that_no_framework_reads_derives_nothing_until_one_does(
    shared_installation: Installation,
    driver: Driver,
    request: pytest.FixtureRequest,
    texts_read: set[str],
) -> None:
    tenant = tenant_named_after(request)
    root = shared_installation.home.parent / "sources" / tenant
    root.mkdir(parents=True)
    for name in ("Cart", "Shelf", "Till"):
        (root / f"{name}.php").write_text(PLAIN.replace("Cart", name))
    (root / "shop.py").write_text("def shop(): ...\n")
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[{"name": "repo", "root": str(root), "include": ["**/*.php", "**/*.py"]}],
    )
    driver.sync(tenant)
    texts_read.clear()
    (root / "Cart.php").write_text("<?php\n" + PLAIN.replace("<?php", "").replace("1", "2"))
    assert not driver.sync(tenant)["derived"]
    assert len(texts_read) <= 2, "its new and its former text"
    # A framework in a language that was not read before is noticed, and so are requests of a test
    # in another language, which led nowhere until then.
    (root / "shop.py").write_text(ROUTES)
    assert driver.sync(tenant)["derived"] == 1
    (root / "tests").mkdir()
    test = (
        "<?php\nclass CartTest extends TestCase { function testAll() { $this->get('/carts'); } }\n"
    )
    (root / "tests" / "CartTest.php").write_text(test)
    assert driver.sync(tenant)["derived"] == 1
    texts_read.clear()
    (root / "shop.py").write_text("def shop(): ...\n")
    driver.sync(tenant)
    assert len(texts_read) >= 5, "of all files"
    with driver.locked(tenant) as ctx:
        derived = [o for o in ctx.catalog.documents.all(tenant) if o.source == "repo.derived"]
        assert not derived
