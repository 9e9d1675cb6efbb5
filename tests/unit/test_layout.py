"""Unit tests mirror packages, links have targets, and named tests exist."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parent
ROOT = UNIT.parents[1]
MAKE = ROOT / "Makefile"


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


@pytest.mark.parametrize(
    ("name", "known"),
    [("security.md", "test_credentials"), ("security-standards.md", "unit/billing/test_cipher")],
)
def test_every_test_that_the_security_pages_name_exists(name: str, known: str) -> None:
    page = (ROOT / "docs" / name).read_text()
    found = re.findall(r"`((?:[a-z0-9_]+/)*test_[a-z0-9_.]+)`", page)
    named = {name.removesuffix(".py") for name in found}
    assert known in named
    folders = (ROOT / "tests", ROOT / "tests" / "security")
    missing = {name for name in named if not any((f / f"{name}.py").is_file() for f in folders)}
    assert missing == set()


def test_every_proof_of_a_workspace_exists_and_every_test_with_the_daemon_is_one() -> None:
    page = (ROOT / "tests/e2e/systems/workspace/README.md").read_text()
    table = page.partition("## What is proved")[2].partition("\n## ")[0]
    named = set(re.findall(r"`((?:[a-z_0-9]+/)+test_[a-z_]+\.py)::(test_[a-z_0-9]+)`", table))
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 10
    assert all("::test_" in row or "`python -m benchmarks." in row for row in rows)
    missing = {(path, name) for path, name in named if name not in names_of_tests(path)}
    assert missing == set()
    of_daemon = "e2e/systems/workspace/test_workspace_daemon.py"
    assert {name for path, name in named if path == of_daemon} == names_of_tests(of_daemon)


def test_make_test_runs_all_unit_tests_and_existing_others() -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.replace("\\\n", " ")
    assert '-m "not long"' in printed
    chosen = {word for word in printed.split() if word.startswith("tests/")}
    assert "tests/unit" in chosen
    assert [path for path in chosen if not (ROOT / path).exists()] == []


def test_make_test_all_leaves_out_no_test_and_ci_only_nightly_ones() -> None:
    make = MAKE.read_text()
    recipe = re.search(r"^test-all: setup\n\t@(.*)$", make, re.M)
    runs_all = re.search(r"^TESTED := (.*)$", make, re.M)
    assert runs_all is not None
    assert not {"-m", "-k", "--deselect", "--ignore"} & set(runs_all[1].split()[2:])
    assert recipe is not None
    assert recipe[1].split() == ["$(TESTED)", "--durations=40", "--durations-min=20"]
    assert "\nmake test-ci\n" in (ROOT / ".ci" / "run").read_text()


def test_ci_runs_every_test_the_cores_without_systems() -> None:
    printed = subprocess.run(
        ["make", "--dry-run", "test-ci"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.replace("\\\n", " ")
    core, others = re.findall(r'-m "not nightly" (.*) \|\| ({.*})', printed)
    # Only a run that reached its end (1) is followed by another, of the tests that failed.
    assert {again for _, again in (core, others)} == {
        "{ test $? -eq 1 && .venv/bin/python -m tests.rerun; }"
    }
    folder, *left_out = core[0].split()
    assert folder == "tests/unit"
    chosen = {word for word in others[0].split() if word.startswith("tests/")}
    assert {word.removeprefix("--ignore=") for word in left_out} <= chosen
    rest = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("*/")}
    with_tests = {name for name in rest if [*(ROOT / name).rglob("test_*.py")]}
    assert with_tests - chosen == {"tests/unit"}
    assert "export RAG_ASSETS_TEST_SYSTEMS=documents" in printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("failed", "status"),
    [(["a"], 0), (["x"], 1), (["a", "x"], 1), ([], 1), (["a", "b", "c"], 0),
     (["a", "b", "c", "d"], 1)],
)  # fmt: skip
def test_a_run_passes_only_if_few_tests_failed_and_all_of_them_pass_alone(
    tmp_path: Path, failed: list[str], status: int
) -> None:
    tests = [f"def test_{name}(): assert {name != 'x'}" for name in "abcdx"]
    (tmp_path / "test_it.py").write_text("\n".join(tests))
    (cache := tmp_path / ".pytest_cache" / "v" / "cache").mkdir(parents=True)
    nodes = [f"test_it.py::test_{name}" for name in failed]
    (cache / "lastfailed").write_text(json.dumps(dict.fromkeys(nodes, True)))
    command, env = [sys.executable, "-m", "tests.rerun"], {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=tmp_path, env=env, check=False)
    assert ran.returncode == status


def test_every_test_of_daemons_forks_and_kills_is_long(request: pytest.FixtureRequest) -> None:
    folder = ROOT / "tests" / "e2e"
    of_folder = [item for item in request.session.items if folder in item.path.parents]
    # None in `make test`: one that its rule did not mark would be among what runs.
    assert [item.nodeid for item in of_folder if item.get_closest_marker("long") is None] == []


def names_of_tests(path: str) -> set[str]:
    """Return the names of a file's tests."""
    file = ROOT / "tests" / path
    tree = ast.parse(file.read_text()) if file.is_file() else ast.parse("")
    functions = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_no_link_of_the_project_leads_nowhere() -> None:
    command = ["git", "ls-files", "-s"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.split(maxsplit=3) for line in listed.stdout.splitlines()]
    links = [path for mode, _, _, path in lines if mode == "120000"]
    assert {"dagster.yaml", "workspace.yaml"} <= set(links)
    assert [path for path in links if not (ROOT / path).exists()] == []
