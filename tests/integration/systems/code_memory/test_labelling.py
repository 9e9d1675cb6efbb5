"""Labels of source code follow from the files around it, whatever little of them is read anew."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
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
    """What classes are, by name: as recorded, and as the build that answers has them."""
    with driver.locked(tenant) as ctx:
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        documents = list(code_catalog(ctx.catalog).kinds.indexed(tenant, serving.number))
        return {symbol: kind for one in documents for symbol, kind in one.kinds.items()}


def forbidden(*_: object, **__: object) -> NoReturn:
    pytest.fail("the facts of all files are read")


def test_what_decides_nothing_reads_no_other_file(
    made: tuple[str, Path], driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, root = made
    driver.sync(tenant)
    known = labels(driver, tenant)
    assert known == {"App\\Shop\\Base": "model", "App\\Shop\\Bill": "model"}
    monkeypatch.setattr("rag_assets.systems.code_memory.pipeline.labelling.files_of", forbidden)
    (root / "Base.php").write_text("\n" + BASE.format(MODEL, 2))
    (root / "Rates.php").write_text(OTHER.replace("return 1", "return 2"))
    (root / "README.md").write_text("# Shop\n\nSells more.\n")
    (root / "NOTES.md").write_text("# Notes\n\nNew.\n")
    driver.sync(tenant)
    assert labels(driver, tenant) == known


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
        patched.setattr("rag_assets.pipeline.publishing.complete_versions", killed)
        with pytest.raises(KeyboardInterrupt):
            driver.sync(tenant)
    assert labels(driver, tenant) == {}, "of the files that the build would have had"
    (root / "Base.php").write_text(BASE.format(MODEL, 1))
    driver.sync(tenant)
    driver.sync(tenant)
    assert labels(driver, tenant) == known
