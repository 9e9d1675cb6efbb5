"""Unit tests mirror packages: who looks for the tests of a module finds them by its path."""

from __future__ import annotations

from pathlib import Path

UNIT = Path(__file__).parent
ROOT = UNIT.parents[1]


def test_every_folder_of_unit_tests_mirrors_a_package() -> None:
    folders = {path.parent.relative_to(UNIT) for path in UNIT.rglob("test_*.py")} - {Path()}
    assert Path("pipeline") in folders
    misplaced = {
        folder
        for folder in folders
        if not any((root / folder).is_dir() for root in (ROOT / "rag_assets", ROOT))
    }
    assert misplaced == set()


def test_every_other_unit_test_mirrors_a_module() -> None:
    modules = {path.stem.removeprefix("test_") for path in UNIT.glob("test_*.py")} - {"layout"}
    assert {name for name in modules if not (ROOT / "rag_assets" / f"{name}.py").is_file()} == set()
