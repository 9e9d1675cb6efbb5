"""A publication and a rollback while the index is searched over HTTP and edited.

`python -m benchmarks.living` runs the whole trial: ten publications and five rollbacks, with the
daemon, at twenty questions a second.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.living.documents import Deletion, Edit, Editor, write_documents
from benchmarks.living.load import MODES, Answer, HitPassage, read_answers, run_load
from benchmarks.living.moves import Mover
from benchmarks.living.service import is_found, run_service
from benchmarks.living.verdict import Move, find_faults, read_places
from tests.installation import FAST, Installation

TENANT = "living"
CUT = {"chunker": {"chunker": "heading", "max_tokens": 60, "overlap": 0}}


def test_an_index_that_is_asked_while_it_changes(
    shared_installation: Installation, tmp_path: Path
) -> None:
    installation = shared_installation
    folder = installation.add_tenant(TENANT, **FAST)
    questions = write_documents(folder, steady=15, edited=2, doomed=2)
    installation.synced(TENANT)

    def command(*arguments: str) -> tuple[int, str, str]:
        done = installation.command(*arguments)
        return done.code, done.out, done.err

    def configure(fields: Any) -> None:
        installation.configure(TENANT, **fields)

    mover = Mover(TENANT, configure, command)
    with run_service(TENANT, tmp_path / "service.log") as (url, token):
        editor = Editor(
            folder,
            edited=2,
            doomed=2,
            finds=partial(is_found, url, token),
            follow=lambda: installation.synced(TENANT),
        )
        with run_load(url, token, questions, tmp_path / "answers", rate=15):
            editor.edit()
            moves = [mover.run_step(CUT)]
            editor.delete()
            editor.edit()
            moves.append(mover.run_step("rollback --now"))
            editor.delete()
    answers = read_answers(tmp_path / "answers")
    places = read_places(installation.context(TENANT))
    assert find_faults(answers, moves, editor.edits, editor.deletions, places) == {}
    assert {answer.mode for answer in answers} == set(MODES)
    assert {answer.generation for answer in answers} == {1, 2}
    assert [move.generation for move in moves] == [2, 1]


def answer(at: float, *passages: HitPassage, generation: int = 1) -> Answer:
    return Answer(at, 0.01, "text", generation=generation, passages=passages)


def test_each_fault_is_found() -> None:
    steady, places = "files/steady-1.md", {1: {"files/steady-1.md": frozenset({(0, 9)})}}
    good = answer(10.0, HitPassage(steady, 0, 9))
    moves = [Move("publish", 0.0, 5.0, 1)]
    edits = [Edit("files/edited-1.md", 1, 0.0, 2.0), Edit("files/edited-1.md", 2, 3.0, 8.0)]
    gone = [Deletion("files/doomed-0.md", 1.0, 2.0)]
    assert find_faults([good], moves, edits, gone, places) == {}

    def named(*answers: Answer, **changed: Any) -> set[str]:
        given = {"moves": moves, "edits": edits, "deletions": gone, "places": places, **changed}
        return set(find_faults(answers, **given))

    assert named(Answer(10.0, 1.0, "knn", failure="503")) == {"no answer"}
    assert named(answer(10.0)) == {"empty answer"}
    assert named(answer(10.0, HitPassage(steady, 0, 8))) == {"passage is not in its build"}
    other = answer(10.0, HitPassage(steady, 0, 9), generation=2)
    assert named(other) == {"answer from another build than the published one"}
    assert named(answer(1.5, HitPassage("files/doomed-0.md", 0, 9))) == set()
    assert named(answer(2.5, HitPassage("files/doomed-0.md", 0, 9))) == {"deleted document found"}
    late = answer(64.0, HitPassage("files/edited-1.md", 0, 9, edition=1))
    assert named(late) == {"outdated edition after 60 seconds"}
    assert named(answer(62.0, HitPassage("files/edited-1.md", 0, 9, edition=1))) == set()
    slow = [Edit("files/edited-1.md", 1, 0.0, 61.0)]
    assert named(good, edits=slow) == {"edit took over 60 seconds"}
    assert named(good, deletions=[Deletion("files/doomed-0.md", 1.0, None)]) == {
        "deletion without effect"
    }
