"""No command or link that a repository names is executed or followed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.ingest.sources.disk import Roots
from tests.repositories import MadeRepository, contents, listed, source_of

HOOKS = ("post-checkout", "pre-commit", "post-index-change", "fsmonitor-watchman", "post-merge")


def armed(tmp_path: Path) -> tuple[MadeRepository, Path]:
    """Create a repository in which every command that Git might run creates a file."""
    made = MadeRepository(tmp_path / "shop")
    canary = tmp_path / "canary"
    made.commit({"a.py": "a = 1\n", "b.sql": "SELECT 1;\n"})
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {canary}\ncat\n")
    script.chmod(0o755)
    for hook in HOOKS:
        path = made.folder / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(script.read_text())
        path.chmod(0o755)
    included = tmp_path / "included"
    included.write_text(f"[core]\n\tfsmonitor = {script}\n\tautocrlf = true\n")
    command = f"{script} %f"
    with (made.folder / "config").open("a") as config:
        config.write(
            f"[core]\n\tfsmonitor = {script}\n\tsshCommand = {script}\n\tpager = {script}\n"
            f"\thooksPath = {made.folder}/hooks\n\teditor = {script}\n\tgitProxy = {script}\n"
            f"\taskPass = {script}\n\talternateRefsCommand = {script}\n"
            f'[filter "evil"]\n\tclean = {command}\n\tsmudge = {command}\n\tprocess = {script}\n'
            f"\trequired = true\n"
            f'[diff "evil"]\n\ttextconv = {script}\n\tcommand = {script}\n'
            f"[diff]\n\texternal = {script}\n[credential]\n\thelper = !{script}\n"
            f"[include]\n\tpath = {included}\n"
            f'[includeIf "gitdir:/"]\n\tpath = {included}\n'
            f"[uploadpack]\n\tpackObjectsHook = {script}\n"
        )
    made.write({".gitattributes": "* filter=evil diff=evil merge=evil\n", "c.py": "c = 1\n"})
    return made, canary


@pytest.mark.parametrize("ref", ["HEAD", "worktree", "main"])
def test_no_command_of_a_repository_is_run(tmp_path: Path, ref: str) -> None:
    made, canary = armed(tmp_path)
    made.write({"a.py": "a = 2\r\n"})
    source = made.source(ref)
    source.state()
    assert contents(source)["a.py"] == ("a = 2\r\n" if ref == "worktree" else "a = 1\n")
    source.describe(["a.py", "c.py"])
    assert not canary.exists()


def test_a_repository_of_another_owner_is_read(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    made = MadeRepository(tmp_path / "shop")
    made.commit({"a.py": "a = 1\n"})
    for path in (made.root, *made.root.rglob("*")):
        os.chown(path, 65534, 65534)
    assert contents(made.source()) == {"a.py": "a = 1\n"}


def failure(root: Path) -> str:
    with pytest.raises(ListingFailed) as failed:
        list(source_of(root, "HEAD").list())
    return failed.value.message


def test_another_repository_cannot_be_borrowed(tmp_path: Path) -> None:
    victim = MadeRepository(tmp_path / "victim")
    victim.commit({"secret.py": "secret = 1\n"})
    thief = tmp_path / "thief"
    thief.mkdir()
    (thief / ".git").write_text(f"gitdir: {victim.folder}\n")
    assert "does not name this folder" in failure(thief)
    (thief / ".git").unlink()
    (thief / ".git").symlink_to(victim.folder)
    assert "is a link" in failure(thief)
    (thief / ".git").unlink()
    own = MadeRepository(thief)
    own.commit({"a.py": "a = 1\n"})
    (own.folder / "objects/info").mkdir(exist_ok=True)
    (own.folder / "objects/info/alternates").write_text(f"{victim.folder}/objects\n")
    assert "alternates" in failure(thief)
    (own.folder / "objects/info/alternates").unlink()
    (own.folder / "objects/aa").symlink_to(victim.folder / "objects/aa")
    assert "a link is among the objects" in failure(thief)
    (own.folder / "objects/aa").unlink()
    head = own.folder / "refs/heads/main"
    head.unlink()
    head.symlink_to(victim.folder / "refs/heads/main")
    # What a link leads to is not read: no branch is there.
    assert listed(source_of(thief, "HEAD")) == {}


def test_a_pointer_may_not_name_a_common_folder_of_its_choice(tmp_path: Path) -> None:
    victim = MadeRepository(tmp_path / "victim")
    victim.commit({"secret.py": "secret = 1\n"})
    thief = tmp_path / "thief"
    (thief / "own").mkdir(parents=True)
    (thief / ".git").write_text("gitdir: own\n")
    (thief / "own/HEAD").write_text("ref: refs/heads/main\n")
    (thief / "own/commondir").write_text(f"{victim.folder}\n")
    assert "does not name this folder" in failure(thief)


def test_roots_bind_repositories_too(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "shop")
    with pytest.raises(ConfigurationError, match="allowed roots"):
        source_of(made.root, roots=Roots(allowed=(tmp_path / "other",)))
    with pytest.raises(ConfigurationError, match="its own data"):
        source_of(made.root, roots=Roots(forbidden=(made.root / "state",)))


@pytest.mark.parametrize("name", ["d", "d" * 250])
@pytest.mark.parametrize("ref", ["bomb", "worktree"])
def test_a_tree_that_holds_the_next_one_many_times_is_refused_at_once(
    tmp_path: Path, ref: str, name: str
) -> None:
    made = MadeRepository(tmp_path / "shop")
    width, depth = (10, 10) if name == "d" else (5, 8)
    mode, oid = 0o100644, made.blob(b"x = 1\n")
    for _ in range(depth):
        names = [f"{name}{number}".encode() for number in range(width)]
        oid = made.tree(dict.fromkeys(names, (mode, oid)))
        mode = 0o040000
    head = "refs/heads/main" if ref == "worktree" else "refs/heads/bomb"
    made.commit_tree({b"all": (mode, oid)}, head)
    source = made.source(ref)
    began = time.process_time()
    for _ in range(5):  # a run and its sensor list it as often
        with pytest.raises(ListingFailed, match="more than 2,000,000 files"):
            list(source.list())
    assert time.process_time() - began < 1


def test_equal_folders_are_listed_in_all_of_their_places(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "shop")
    blob = made.blob(b"x = 1\n")
    shared = made.tree({b"a.py": (0o100644, blob), b".git": (0o100644, blob)})
    both = made.tree({b"one": (0o040000, shared), b"two": (0o040000, shared)})
    made.commit_tree({b"b.py": (0o100644, blob), b"in": (0o040000, both)}, "refs/heads/main")
    assert sorted(listed(made.source("main"))) == ["b.py", "in/one/a.py", "in/two/a.py"]


def test_a_blob_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    import zlib

    made = MadeRepository(tmp_path / "shop")
    oid = made.blob(b"x = 1\n")
    made.commit_tree({b"a.py": (0o100644, oid)}, "refs/heads/bomb")
    path = made.folder / "objects" / str(oid)[:2] / str(oid)[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 6\0" + bytes(50_000_000)))
    with pytest.raises(ListingFailed, match="damaged"):
        list(made.source("bomb").list())
