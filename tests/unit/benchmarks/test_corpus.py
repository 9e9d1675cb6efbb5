"""The benchmark's corpus is reproducible, and its phases change it as described."""

from pathlib import Path

import pytest

from benchmarks import corpus

FILES = 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "corpus"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.md")}


def test_corpus_with_more_files_starts_with_the_same_files(tmp_path: Path) -> None:
    corpus.write_corpus(tmp_path / "few", 30)
    corpus.write_corpus(tmp_path / "many", 60)
    few, many = contents(tmp_path / "few"), contents(tmp_path / "many")
    assert few.items() <= many.items()
    assert len(set(many.values())) == 60


@pytest.mark.slow
def test_each_change_affects_one_percent_of_files_and_none_twice(folder: Path) -> None:
    paths = corpus.write_corpus(folder, FILES)
    before = contents(folder)
    edited, renamed = corpus.edit_files(paths), corpus.rename_files(paths)
    deleted = corpus.delete_files(paths)
    after = contents(folder)
    assert len(edited) == len(renamed) == len(deleted) == FILES // 100
    changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    assert changed == {str(path.relative_to(folder)) for path in edited}
    gone = {before[name] for name in before.keys() - after.keys()}
    new = {after[name] for name in after.keys() - before.keys()}
    assert new < gone  # renamed files hold what they held
    assert len(gone - new) == len(deleted)


@pytest.mark.slow
def test_edit_changes_one_paragraph_differently_in_each_round(folder: Path) -> None:
    paths = corpus.write_corpus(folder, FILES)
    texts = [path.read_text() for path in paths]
    for round_number in (1, 2):
        edited = corpus.edit_files(paths, round_number)
        now = [path.read_text() for path in paths]
        for path in edited:
            old, new = (text[paths.index(path)].split("\n\n") for text in (texts, now))
            assert sum(a != b for a, b in zip(old, new, strict=True)) == 1
        texts = now


@pytest.mark.slow
def test_restore_undoes_every_change(folder: Path) -> None:
    paths = corpus.write_corpus(folder, FILES)
    before = contents(folder)
    corpus.edit_files(paths)
    corpus.rename_files(paths)
    corpus.delete_files(paths)
    corpus.restore_files(folder, paths)
    assert contents(folder) == before
