"""Listing and reading a worktree, with committed and uncommitted changes."""

from __future__ import annotations

import os
from pathlib import Path

import pygit2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.common.errors import DocumentVanished, ListingFailed
from rag_assets.systems.code_memory.sources.repositories.worktree import read_index
from tests.repositories import OLD, MadeRepository, contents, listed

FILES = {"src/app.py": "print(1)\n", "src/other.py": "other = 1\n", "README.md": "# Shop\n"}


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    repository = MadeRepository(tmp_path / "shop")
    repository.commit(FILES)
    return repository


def test_committed_files_are_listed_by_blob_and_others_by_their_facts(made: MadeRepository) -> None:
    made.write({"src/app.py": "print(2)\n", "src/new.py": "new = 1\n"})
    (made.root / "README.md").unlink()
    documents = listed(made.source())
    assert list(documents) == ["src/app.py", "src/new.py", "src/other.py"]
    assert documents["src/other.py"].version is not None
    changed = documents["src/app.py"]
    facts = (made.root / "src/app.py").stat()
    assert changed.version is None
    assert changed.facts.inode == facts.st_ino
    assert (changed.size, changed.mtime_ns) == (facts.st_size, facts.st_mtime_ns)
    assert contents(made.source())["src/new.py"] == "new = 1\n"


def test_content_decides_and_not_the_time_of_a_file(made: MadeRepository) -> None:
    before = listed(made.source())
    for path in FILES:
        os.utime(made.root / path, (OLD + 50, OLD + 50))
    assert listed(made.source()) == before
    made.write({"src/app.py": "print(2)\n"})
    made.write({"src/app.py": "print(1)\n"})
    assert listed(made.source()) == before


def test_a_file_that_was_just_written_is_listed_by_its_facts(made: MadeRepository) -> None:
    made.write({"src/app.py": "print(1)\n"}, at=None)
    assert listed(made.source())["src/app.py"].version is None
    assert contents(made.source())["src/app.py"] == "print(1)\n"


def test_ignored_files_stay_out_unless_they_are_tracked(made: MadeRepository) -> None:
    (made.folder / "info").mkdir(exist_ok=True)
    (made.folder / "info/exclude").write_text("mine.py\n")
    made.write({"logs/kept.py": "kept = 1\n"})
    made.commit()
    made.write(
        {
            ".gitignore": "logs/\n*.tmp.py\n!keep.tmp.py\n",
            "src/.gitignore": "!again.tmp.py\n",
            "logs/new.py": "x = 1\n",
            "a.tmp.py": "x = 1\n",
            "keep.tmp.py": "x = 1\n",
            "src/again.tmp.py": "x = 1\n",
            "mine.py": "x = 1\n",
        }
    )
    new = listed(made.source()).keys() - FILES.keys()
    assert new == {"logs/kept.py", "keep.tmp.py", "src/again.tmp.py"}


def test_added_intended_removed_and_conflicting_files(made: MadeRepository) -> None:
    made.write({"added.py": "a = 1\n"})
    made.git.index.add("added.py")
    made.git.index.remove("src/other.py")
    ours = made.git.index["src/app.py"]
    made.git.index.write()
    made.write({".gitignore": "other.py\n", "src/app.py": "<<<<<<<\n"})
    documents = listed(made.source())
    # Removed from the index and ignored: it is there, and not the project's.
    assert set(documents) == {"README.md", "added.py", "src/app.py"}
    assert documents["added.py"].version is None
    made.git.index.add_conflict(None, ours, ours)
    made.git.index.write()
    entry = read_index(made.folder)
    assert entry is not None
    assert not entry.entries["src/app.py"].settled
    assert contents(made.source())["src/app.py"] == "<<<<<<<\n"


@pytest.mark.parametrize(
    ("attributes", "autocrlf"),
    [("* text=auto\n", None), ("*.py text\n", None), ("*.py eol=crlf\n", None), ("", "true")],
    ids=["auto", "text", "eol", "autocrlf"],
)
def test_line_ends_are_no_change(
    made: MadeRepository, attributes: str, autocrlf: str | None
) -> None:
    made.write({"src/app.py": "print(1)\r\n"})
    assert listed(made.source())["src/app.py"].version is None, "nothing converts it"
    assert contents(made.source())["src/app.py"] == "print(1)\r\n"
    made.write({"src/app.py": "print(1)\n"})
    if autocrlf:
        made.git.config["core.autocrlf"] = autocrlf
    made.commit({".gitattributes": attributes, "a.md": "# A\n"})
    made.write({"src/app.py": "print(1)\r\n"})
    assert listed(made.source())["src/app.py"].version is not None
    made.write({"src/app.py": "print(2)\r\n"})
    assert listed(made.source())["src/app.py"].version is None
    assert contents(made.source())["src/app.py"] == "print(2)\n"
    assert made.source().read("src/app.py", max_bytes=100) == b"print(2)\n"


def test_a_case_only_rename_is_a_rename(made: MadeRepository) -> None:
    (made.root / "src/app.py").rename(made.root / "src/App.py")
    assert set(listed(made.source())) == {"README.md", "src/App.py", "src/other.py"}


def test_submodules_links_and_repositories_within_stay_out(made: MadeRepository) -> None:
    inner = MadeRepository(made.root / "inner")
    inner.commit({"inner.py": "i = 1\n"})
    (made.root / "link.py").symlink_to("src/app.py")
    (made.root / "elsewhere").symlink_to("/etc")
    made.git.index.add("link.py")
    sub = pygit2.IndexEntry("sub", made.git.head.target, pygit2.enums.FileMode.COMMIT)
    made.git.index.add(sub)
    made.git.index.write()
    source = made.source()
    assert set(listed(source)) == FILES.keys()
    assert source.left_out == {"link": 1, "submodule": 1}
    made.commit_index()
    source = made.source("HEAD")
    assert set(listed(source)) == FILES.keys()
    assert source.left_out == {"link": 1, "submodule": 1}


def test_a_link_in_place_of_a_folder_leads_nowhere(made: MadeRepository, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "app.py").write_text("secret = 1\n")
    source = made.source()
    (made.root / "src").rename(made.root / "moved")
    (made.root / "src").symlink_to(secret)
    assert set(listed(source)) == {"README.md", "moved/app.py", "moved/other.py"}
    with pytest.raises(DocumentVanished):
        made.source().read("src/app.py", max_bytes=100)


def test_a_file_that_changed_after_its_listing_has_vanished(made: MadeRepository) -> None:
    made.write({"src/app.py": "print(2)\n"})
    source = made.source()
    list(source.list())
    made.write({"src/app.py": "print(3)\n", "src/other.py": "other = 2\n"}, at=OLD + 9)
    with pytest.raises(DocumentVanished):
        source.read("src/app.py", max_bytes=100)
    # As it was listed: by its blob.
    assert source.read("src/other.py", max_bytes=100) == b"other = 1\n"


def test_a_sparse_checkout_has_all_of_its_commit(made: MadeRepository) -> None:
    index = made.folder / "index"
    raw = bytearray(index.read_bytes())
    at = raw.index(b"src/app.py") - 2
    raw[4:8] = (3).to_bytes(4, "big")
    raw[at] |= 0x40
    name_end = raw.index(b"\0", at + 2)
    entry = at - 60
    padded = entry + (name_end - entry + 8) // 8 * 8
    extended = bytes(raw[entry : at + 2]) + b"\x40\x00" + bytes(raw[at + 2 : name_end])
    extended += b"\0" * (8 - len(extended) % 8)
    index.write_bytes(bytes(raw[:entry]) + extended + bytes(raw[padded:]))
    (made.root / "src/app.py").unlink()
    assert set(listed(made.source())) == FILES.keys()
    assert made.source().read("src/app.py", max_bytes=100) == b"print(1)\n"


def test_a_damaged_index_fails_the_listing(made: MadeRepository) -> None:
    (made.folder / "index").write_bytes(b"DIRC\0\0\0\2\0\0\0\x09")
    with pytest.raises(ListingFailed, match="index"):
        list(made.source().list())


def test_state_changes_with_each_relevant_edit(made: MadeRepository) -> None:
    made.write({".gitignore": "*.tmp.py\n"})
    source = made.source()
    before = source.state()
    made.write({"a.tmp.py": "a = 1\n"})
    made.git.index.read()
    made.git.index.write()
    assert source.state() == before
    made.write({"src/app.py": "print(2)\n"}, at=OLD + 1)
    edited = made.source().state()
    made.write({"src/new.py": "x = 1\n"})
    added = made.source().state()
    (made.root / "src/new.py").unlink()
    assert made.source().state() == edited
    made.write({".gitattributes": "*.py linguist-vendored\n"})
    attributed = made.source().state()
    made.write({".gitignore": ""})
    unignored = made.source().state()
    made.commit()
    committed = made.source().state()
    assert len({before, edited, added, attributed, unignored, committed}) == 6


def test_differing_files_are_described(made: MadeRepository) -> None:
    made.write({"src/app.py": "print(2)\n", "new.py": "x = 1\n"})
    (made.root / "README.md").unlink()
    described = made.source().describe(["src/app.py", "src/other.py", "new.py", "README.md"])
    assert described.repository == "shop"
    assert described.commit == str(made.git.head.target)
    assert described.differing == {"src/app.py", "new.py", "README.md"}


PATHS = ("a.py", "A.py", "src/b.py", "src/deep/c.md", "logs/d.py", "e.tmp.py")
TEXTS = ("zero\n", "one\n", "two\n", "two\r\n")
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(TEXTS)),
    st.tuples(st.just("move"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    *(
        st.tuples(st.just(k), st.sampled_from(PATHS), st.none())
        for k in ("delete", "add", "forget")
    ),
    st.tuples(st.sampled_from(("commit", "reset", "ignore", "back")), st.none(), st.none()),
)


def apply_step(made: MadeRepository, kind: str, path: str | None, other: str | None) -> None:
    index = made.git.index
    index.read()
    file = made.root / (path or "x")
    if kind == "write":
        made.write({str(path): str(other)})
    elif kind == "delete":
        file.unlink(missing_ok=True)
    elif kind == "move" and file.exists():
        (made.root / str(other)).parent.mkdir(parents=True, exist_ok=True)
        file.rename(made.root / str(other))
    elif kind == "add" and file.exists():
        index.add(str(path))
        index.write()
    elif kind == "forget" and path in index:
        index.remove(str(path))
        index.write()
    else:
        apply_whole_step(made, kind)


def apply_whole_step(made: MadeRepository, kind: str) -> None:
    git = made.git
    if kind == "commit":
        made.commit()
    elif kind == "ignore":
        made.write({".gitignore": "*.tmp.py\nlogs/\n"})
    elif kind in ("reset", "back") and not git.head_is_unborn:
        parents = git[git.head.target].parents
        target = parents[0].id if kind == "back" and parents else git.head.target
        git.reset(target, pygit2.enums.ResetMode.HARD)


def recount(made: MadeRepository) -> dict[str, tuple[str, str | None]]:
    """Return relevant contents, and the blobs of committed ones, according to libgit2's status."""
    repository = pygit2.Repository(str(made.root))
    tree = {} if repository.head_is_unborn else blobs(repository, repository.head.peel().tree)
    flags = repository.status(untracked_files="all")
    tracked = {entry.path for entry in repository.index}
    new = {path for path, flag in flags.items() if flag & pygit2.enums.FileStatus.WT_NEW}
    found = {}
    for path in tracked | new:
        file = made.root / path
        if path.endswith((".py", ".md")) and file.is_file():
            content = file.read_bytes()
            same = tree.get(path) == str(pygit2.hash(content))
            found[path] = content.decode(), tree[path] if same else None
    return found


def blobs(repository: pygit2.Repository, tree: pygit2.Tree, above: str = "") -> dict[str, str]:
    found = {}
    for entry in tree:
        if isinstance(entry, pygit2.Tree):
            found.update(blobs(repository, entry, f"{above}{entry.name}/"))
        else:
            found[f"{above}{entry.name}"] = str(entry.id)
    return found


@pytest.mark.slow
@settings(max_examples=120)
@given(steps=st.lists(STEPS, max_size=14))
def test_any_edits_are_listed_as_a_recount_has_them(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str | None, str | None]]
) -> None:
    made = MadeRepository(tmp_path_factory.mktemp("any") / "r")
    states: dict[str, dict[str, tuple[str, str | None]]] = {}
    for kind, path, other in steps:
        apply_step(made, kind, path, other)
        for file in made.root.rglob("*.[pm][yd]"):
            os.utime(file, (OLD, OLD))
        source = made.source()
        state = source.state()
        found = {
            path: (source.read(path, max_bytes=99).decode(), document.version)
            for path, document in listed(source).items()
        }
        expected = recount(made)
        assert found == expected
        assert states.setdefault(state, expected) == expected
        for name, (content, _) in expected.items():
            assert made.source().read(name, max_bytes=99).decode() == content


def test_empty_files_are_left_out_and_counted(made: MadeRepository) -> None:
    made.write({"src/__init__.py": "", "src/blank.py": " \n\n"})
    source = made.source()
    assert listed(source).keys() == FILES.keys()
    assert source.left_out["empty"] == 2
