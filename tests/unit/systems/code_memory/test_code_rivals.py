"""Programs compared with code memory: a program that cannot run is reported, not measured."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pygit2
import pytest

from benchmarks.code_questions.questions import AnswerLocation as Answer
from benchmarks.code_questions.questions import FoundPassage, Question
from benchmarks.rivals.code import measure_program
from benchmarks.rivals.code_graphs import CodeReviewGraph, GitNexus
from benchmarks.rivals.code_programs import ProgramFolders
from benchmarks.rivals.environments import NotUsableError, find_python_with_extensions

QUESTION = Question("q", "multi-hop", "What pays?", ((Answer("a.php"),),), is_tuned=True)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@dataclass
class Silent:
    """A program with predefined results."""

    found: list[FoundPassage]
    closed: list[Path] = field(default_factory=list)
    name: str = "silent"
    package: str = "silent"

    def install(self, folder: Path) -> None:
        (folder / "lib/python/site-packages/silent-1.2.dist-info").mkdir(parents=True)

    def index(self, place: ProgramFolders) -> None:
        assert (place.root / "a.php").exists(), "each has a copy of its own"

    def ask(self, place: ProgramFolders, question: str) -> list[FoundPassage]:
        return self.found

    def close(self, place: ProgramFolders) -> None:
        self.closed.append(place.root)


@pytest.fixture
def options(tmp_path: Path) -> argparse.Namespace:
    root = tmp_path / "application"
    repository = pygit2.init_repository(str(root))
    (root / "a.php").write_text("<?php\n")
    repository.index.add("a.php")
    author = pygit2.Signature("ann", "ann@example.org")
    tree = repository.index.write_tree()
    repository.create_commit("HEAD", author, author, "Begin", tree, [])
    return argparse.Namespace(repository=root, work=tmp_path / "work", show=False)


def test_program_with_answers_is_measured(options: argparse.Namespace) -> None:
    program = Silent([FoundPassage("a.php")])
    told = measure_program(program, options, "", [QUESTION])
    assert told["version"] == "1.2"
    assert told["all"] == {"multi-hop": 1.0}
    assert program.closed


def test_program_without_any_answer_is_reported_as_failed(options: argparse.Namespace) -> None:
    program = Silent([])
    told = measure_program(program, options, "", [QUESTION])
    assert told["failed"] == "it answered every question with nothing"
    assert "all" not in told
    assert program.closed, "its processes are stopped despite the failure"


def place_of(folder: Path) -> ProgramFolders:
    for name in ("root", "home"):
        (folder / name).mkdir()
    url = "http://127.0.0.1:1/v1"
    return ProgramFolders(folder / "environment", folder / "root", folder / "home", url)


def test_gitnexus_without_its_search_extension_is_reported(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    command = place.environment / "node_modules" / ".bin" / "gitnexus"
    script(command, "echo 'GitNexus: FTS extension load failed: away' >&2; echo '{}'")
    with pytest.raises(NotUsableError, match="FTS extension load failed: away"):
        GitNexus().ask(place, "What pays?")
    script(command, """echo '{"definitions": [{"filePath": "a.php", "startLine": 3}]}'""")
    assert GitNexus().ask(place, "What pays?") == [FoundPassage("a.php", 3)]


def test_code_review_graph_without_vectors_is_reported(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    path = str(place.root / "a.php")
    hit = {"file_path": path, "line_start": 3, "line_end": 5, "name": "pay"}
    command = place.environment / "bin" / "code-review-graph"
    script(command, f"echo '{json.dumps({'search_mode': 'hybrid', 'results': [hit]})}'")
    assert CodeReviewGraph().ask(place, "What pays?") == [FoundPassage("a.php", 3, 5, "pay")]
    script(command, f"echo '{json.dumps({'search_mode': 'fts', 'results': [hit]})}'")
    with pytest.raises(NotUsableError, match="without vectors: fts"):
        CodeReviewGraph().ask(place, "What pays?")


def test_first_python_whose_sqlite_loads_extensions_is_chosen(tmp_path: Path) -> None:
    without, with_them = script(tmp_path / "a", "exit 1"), script(tmp_path / "b", "exit 0")
    candidates = [str(without), str(with_them), sys.executable]
    assert find_python_with_extensions(candidates) == str(with_them)
    with pytest.raises(NotUsableError, match=f"asked: {without}"):
        find_python_with_extensions([str(without)])
