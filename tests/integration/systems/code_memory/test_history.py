"""The history of files and definitions in the agents' tools."""

from __future__ import annotations

from pathlib import Path

import pygit2
import pytest

from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.history import HistoryWalk
from rag_assets.systems.code_memory.sources.repositories.repository import Repository
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

TENANT = "code-history"
TOTAL = "def total(lines):\n    return sum(lines)\n"
ROUNDED = "def total(lines):\n    return round(sum(lines), 2)\n"
OTHER = "def count(lines):\n    return len(lines)\n"
PASSWORD = "hunter2-Tr0ub4dor-9x7Qz"


@pytest.fixture(scope="module")
def made(shared_installation: Installation) -> MadeRepository:
    made = MadeRepository(shared_installation.home.parent / "sources" / TENANT)
    made.commit({"bill.py": TOTAL, "other.py": OTHER}, "Add totals")
    made.commit({"bill.py": f"{OTHER}\n\n{TOTAL}"}, "Count lines")
    made.commit({"bill.py": f"{OTHER}\n\n{ROUNDED}"}, "Round totals\n\nMore of it.")
    made.commit({"other.py": ROUNDED}, f"Log in with password = '{PASSWORD}'")
    return made


@pytest.fixture(scope="module")
def about(made: MadeRepository, shared_installation: Installation, driver: Driver) -> CodeAnswers:
    source = {"name": "repo", "type": "git", "root": str(made.root), "ref": "HEAD"}
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[source],
    )
    driver.sync(TENANT)
    session = driver.session
    record = session.catalog.tenants.get(TENANT)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), Caller(), session.settings)


def subjects(answer: str) -> list[str]:
    lines = [line.split("  ") for line in answer.split("\n") if line.endswith("(Ada)")]
    assert all(date == "2023-11-14" and len(id_) == 9 for _, date, id_, *_ in lines)
    return [line[3] for line in lines]


def test_history_of_a_file_lists_its_commits_newest_first(about: CodeAnswers) -> None:
    answer = about.history_of(path="bill.py")
    assert subjects(answer) == ["Round totals", "Count lines", "Add totals"]
    assert "4 commits looked at, back to the first with this path" in answer


def test_history_of_a_definition_leaves_out_commits_that_changed_other_lines(
    about: CodeAnswers,
) -> None:
    answer = about.history_of(symbol="bill.total")
    assert subjects(answer) == ["Round totals", "Add totals"]
    assert answer.startswith("bill.total  bill.py:5:")


def test_history_masks_credentials_in_subjects(about: CodeAnswers) -> None:
    answer = about.history_of(path="other.py")
    assert subjects(answer)[-1] == "Add totals"
    assert len(subjects(answer)) == 2
    assert PASSWORD not in answer


def test_history_of_a_merge_follows_the_parent_with_the_same_file(
    about: CodeAnswers, made: MadeRepository, driver: Driver
) -> None:
    base = made.git.head.target
    made.commit({"bill.py": f"{OTHER}\n\n{TOTAL}"}, "Undo rounding on main")
    ours = made.git.head.target
    made.git.create_reference("refs/heads/side", base)
    made.git.checkout("refs/heads/side")
    made.commit({"side.py": OTHER}, "Add a file on a branch")
    made.git.index.read()
    side = made.git.head.target
    made.git.checkout("refs/heads/main")
    merged = made.git.merge_commits(ours, side)
    tree = merged.write_tree(made.git)
    who = made.git.get(ours).author
    made.git.create_commit("refs/heads/main", who, who, "Merge", tree, [ours, side])
    driver.sync(TENANT)
    told = subjects(about.history_of(path="bill.py"))
    assert told == ["Undo rounding on main", "Round totals", "Count lines", "Add totals"]
    assert subjects(about.history_of(path="side.py")) == ["Add a file on a branch"]


def test_history_of_a_shallow_clone_says_where_it_ends(
    about: CodeAnswers, made: MadeRepository
) -> None:
    commit = made.git.head.peel()
    while len(commit.parents) != 1 or commit.message.strip() != "Count lines":
        commit = commit.parents[0]
    [first] = commit.parent_ids
    lost = made.folder / "objects" / str(first)[:2] / str(first)[2:]
    lost.rename(made.root / "lost")
    try:
        answer = about.history_of(path="bill.py")
    finally:
        (made.root / "lost").rename(lost)
    assert subjects(answer)[-1] == "Count lines"
    assert f"the repository has no commits before {str(commit.id)[:9]}" in answer


def test_history_of_a_merge_of_too_many_parents_says_what_was_left_out(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "many")
    made.commit({"a.py": TOTAL}, "Add totals")
    who = pygit2.Signature("Ada", "ada@example.org", 1_700_000_000, 0)
    parents = [
        made.git.create_commit(None, who, who, f"side {n}", made.git.head.peel().tree.id, [])
        for n in range(120)
    ]
    made.git.index.add_all()
    (made.root / "a.py").write_text(ROUNDED)
    made.git.index.add("a.py")
    tree = made.git.index.write_tree()
    merge = made.git.create_commit(None, who, who, "Merge", tree, parents)
    found = HistoryWalk(Repository(made.root), "a.py").follow(str(merge), most=200)
    assert len(found.changes) == 101
    assert found.incomplete == f"{str(merge)[:9]} has more than 100 parents"


def test_history_of_an_unknown_name_is_not_guessed(about: CodeAnswers) -> None:
    assert about.history_of(symbol="Flurb").startswith("Nothing that you may read has this name.")
    assert about.history_of(path="flurb.py").startswith("Nothing that you may read has this name.")


def test_history_of_a_repository_that_moved_away_says_so(
    about: CodeAnswers, made: MadeRepository
) -> None:
    elsewhere = made.root.with_name("elsewhere")
    made.root.rename(elsewhere)
    try:
        answer = about.history_of(path="bill.py")
    finally:
        elsewhere.rename(made.root)
    assert answer == "bill.py:\n  the repository cannot be read here: git log -- bill.py"
