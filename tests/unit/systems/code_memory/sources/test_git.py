"""Commits of repositories, hostile ones too."""

from __future__ import annotations

import os
import shutil
import time
import zlib
from pathlib import Path

import pygit2
import pytest

from rag_assets.common.errors import (
    ConfigurationError,
    DocumentTooLarge,
    DocumentVanished,
    ListingFailed,
)
from rag_assets.ingest.sources.disk import Roots
from rag_assets.systems.code_memory.sources.git import UNDATED, GitSource
from rag_assets.systems.code_memory.sources.repositories.repository import Refs, Repository
from tests.repositories import OLD, WHO, MadeRepository, contents, listed, source_of


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    repository = MadeRepository(tmp_path / "shop")
    repository.commit({"src/app.py": "print(1)\n", "README.md": "# Shop\n"})
    return repository


def failure(source: GitSource) -> ListingFailed:
    with pytest.raises(ListingFailed) as failed:
        list(source.list())
    return failed.value


def test_a_commit_is_listed_by_blob_whatever_the_worktree_holds(made: MadeRepository) -> None:
    made.write({"src/app.py": "print(2)\n", "src/new.py": "new = 1\n"})
    source = made.source("HEAD")
    documents = listed(source)
    assert list(documents) == ["README.md", "src/app.py"]
    app = documents["src/app.py"]
    assert app.version == str(made.git.revparse_single("HEAD:src/app.py").id)
    assert (app.size, app.mtime_ns, app.ctime_ns, app.inode) == (9, 0, 0, 0)
    assert app.media_type == "text/x-python"
    assert contents(source) == {"README.md": "# Shop\n", "src/app.py": "print(1)\n"}


def test_an_unchanged_file_is_listed_alike_after_other_commits(made: MadeRepository) -> None:
    before = listed(made.source("HEAD"))["README.md"]
    os.utime(made.root / "README.md", (OLD + 9, OLD + 9))
    made.commit({"src/app.py": "print(3)\n"})
    assert listed(made.source("HEAD"))["README.md"] == before
    assert listed(made.source())["README.md"] == before
    assert before.modified_at == UNDATED


def test_branches_tags_and_commits_are_found(made: MadeRepository) -> None:
    first = str(made.git.head.target)
    made.git.create_tag("v1", first, pygit2.enums.ObjectType.COMMIT, WHO, "one")
    made.git.references.create("refs/tags/light", first)
    made.git.references.create("refs/remotes/origin/main", first)
    made.git.branches.local.create("topic/one", made.git[first])
    second = made.commit({"src/app.py": "print(2)\n"})
    refs = ("v1", "light", "topic/one", "refs/heads/topic/one", "origin/main", first, first[:9])
    for ref in refs:
        assert made.source(ref).describe().commit == first, ref
        assert contents(made.source(ref))["src/app.py"] == "print(1)\n", ref
    for ref in ("main", "HEAD", "worktree", second):
        assert made.source(ref).describe().commit == second, ref


def test_packed_refs_are_read_and_loose_ones_override_them(made: MadeRepository) -> None:
    first = str(made.git.head.target)
    for name in ("main", "other"):
        (made.folder / "refs/heads" / name).unlink(missing_ok=True)
    (made.folder / "packed-refs").write_text(
        f"# pack-refs with: peeled fully-peeled sorted\n{first} refs/heads/main\n"
        f"{first} refs/heads/other\n{first} refs/tags/v1\n^{first}\n"
    )
    assert made.source("HEAD").describe().commit == first
    second = made.commit({"src/app.py": "print(2)\n"})
    assert made.source("main").describe().commit == second
    assert made.source("other").describe().commit == first
    assert Refs(Repository(made.root).folders).list_names() == ["main", "other", "v1"]


def test_the_error_for_an_unknown_ref_names_similar_ones(made: MadeRepository) -> None:
    for name in ("feature/login", "feature/logout"):
        made.git.branches.local.create(name, made.git[made.git.head.target])
    error = failure(made.source("feature/logn"))
    assert error.message == "source code: there is no branch, tag or commit 'feature/logn'"
    assert "feature/login" in str(error.hint)
    assert "main" in str(failure(made.source("a" * 9)).hint)
    for name in ("../../etc/passwd", "a\0b", "HEAD~1", "refs/../config", "0" * 40):
        failure(made.source(name))


def test_a_detached_head_is_read(made: MadeRepository) -> None:
    first = made.git.head.target
    made.commit({"src/app.py": "print(2)\n"})
    made.git.set_head(first)
    assert contents(made.source("HEAD"))["src/app.py"] == "print(1)\n"


def test_a_repository_without_a_commit_has_its_worktree(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path / "new")
    assert listed(made.source("HEAD")) == {}
    assert made.source("HEAD").describe().commit is None
    made.write({"a.py": "a = 1\n"})
    assert contents(made.source()) == {"a.py": "a = 1\n"}


def test_a_bare_repository_has_commits_and_no_worktree(made: MadeRepository) -> None:
    bare = made.root.parent / "shop.git"
    pygit2.clone_repository(str(made.root), str(bare), bare=True)
    shutil.rmtree(bare / "objects" / "info", ignore_errors=True)
    source = source_of(bare, "HEAD")
    assert contents(source) == {"README.md": "# Shop\n", "src/app.py": "print(1)\n"}
    described = source.describe(["README.md"])
    assert (described.repository, described.differing) == ("shop", None)
    error = failure(source_of(bare))
    assert "it has no worktree" in error.message
    assert "ref: HEAD" in str(error.hint)


def test_a_shallow_clone_lists_what_it_has(made: MadeRepository) -> None:
    first = str(made.git.head.target)
    second = made.commit({"src/app.py": "print(2)\n"})
    (made.folder / "shallow").write_text(f"{second}\n")
    (made.folder / "objects" / first[:2] / first[2:]).unlink()
    assert contents(made.source("HEAD"))["src/app.py"] == "print(2)\n"


def test_a_linked_worktree_has_its_own_head(made: MadeRepository) -> None:
    made.git.branches.local.create("topic", made.git[made.git.head.target])
    linked = made.root.parent / "linked"
    made.git.add_worktree("linked", str(linked), made.git.references["refs/heads/topic"])
    (linked / "src/app.py").write_text("print(7)\n")
    source = source_of(linked)
    assert contents(source)["src/app.py"] == "print(7)\n"
    assert source.describe().repository == "shop"
    assert contents(source_of(linked, "HEAD"))["src/app.py"] == "print(1)\n"
    # Its other half must name it.
    (made.folder / "worktrees/linked/gitdir").write_text("/elsewhere/.git\n")
    assert "does not name this folder" in failure(source_of(linked)).message


def test_names_that_are_not_utf8_are_listed_and_read(made: MadeRepository) -> None:
    names = ["caf\udce9.py", "new\nline.py", "blank .py", "ü.py"]
    for name in names:
        (made.root / name).write_bytes(b"x = 1\n")
    raw = {os.fsencode(name): (0o100644, made.blob(b"x = 1\n")) for name in names}
    made.commit_tree(raw, "refs/heads/odd")
    assert sorted(contents(made.source("odd"))) == sorted(names)
    assert set(names) < set(contents(made.source()))


def test_names_that_lead_elsewhere_are_left_out(made: MadeRepository) -> None:
    blob = made.blob(b"x = 1\n")
    names = (b"..", b".", b".git", b".GIT", b"a/b.py", b"good.py", b"x" * 5_000 + b".py")
    made.commit_tree(dict.fromkeys(names, (33188, blob)), "refs/heads/odd")
    assert list(listed(made.source("odd"))) == ["good.py"]


@pytest.mark.parametrize("kind", ["commit", "tree", "blob"])
@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_a_damaged_repository_fails_the_listing(
    made: MadeRepository, kind: str, damage: str
) -> None:
    revision = {"commit": "HEAD", "tree": "HEAD^{tree}", "blob": "HEAD:src/app.py"}[kind]
    oid = str(made.git.revparse_single(revision).id)
    source = made.source("HEAD")
    path = made.folder / "objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:10])
    else:
        other = str(made.blob(b"else\n"))
        path.write_bytes((made.folder / "objects" / other[:2] / other[2:]).read_bytes())
    assert oid in failure(source).message


@pytest.mark.parametrize("part", ["HEAD", "objects"])
def test_a_folder_without_parts_of_a_repository_fails(made: MadeRepository, part: str) -> None:
    path = made.folder / part
    path.unlink() if path.is_file() else shutil.rmtree(path)
    assert f"{part} is missing" in failure(made.source("HEAD")).message


@pytest.mark.parametrize(
    ("setting", "name"), [("objectformat", "sha256"), ("refstorage", "reftable")]
)
def test_unsupported_formats_are_named(made: MadeRepository, setting: str, name: str) -> None:
    with (made.folder / "config").open("a") as config:
        config.write(f"[extensions]\n\t{setting} = {name}\n")
    assert name in failure(made.source("HEAD")).message


@pytest.mark.parametrize("ref", ["nonsense\n", "", "ref: refs/heads/main\n"])
def test_a_damaged_ref_fails_the_listing(made: MadeRepository, ref: str) -> None:
    (made.folder / "refs/heads/main").write_text(ref)
    failure(made.source("HEAD"))


def test_state_changes_with_the_tree_alone(made: MadeRepository) -> None:
    source = made.source("HEAD")
    before = source.state()
    made.commit(message="nothing")
    made.write({"src/app.py": "print(9)\n"})
    assert source.state() == before
    made.commit()
    assert source.state() != before


def test_a_listed_commit_is_read_after_the_branch_moved(made: MadeRepository) -> None:
    source = made.source("main")
    list(source.list())
    made.commit({"src/app.py": "print(2)\n"})
    assert source.read("src/app.py", max_bytes=100) == b"print(1)\n"
    assert made.source("main").read("src/app.py", max_bytes=100) == b"print(2)\n"
    for path in ("gone.py", "src", "src/app.py/x", "../shop/README.md", "a\0b"):
        with pytest.raises(DocumentVanished):
            made.source("main").read(path, max_bytes=100)
    with pytest.raises(DocumentTooLarge):
        made.source("main").read("src/app.py", max_bytes=8)


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


def refusal(root: Path) -> str:
    return failure(source_of(root, "HEAD")).message


def test_another_repository_cannot_be_borrowed(tmp_path: Path) -> None:
    victim = MadeRepository(tmp_path / "victim")
    victim.commit({"secret.py": "secret = 1\n"})
    thief = tmp_path / "thief"
    thief.mkdir()
    (thief / ".git").write_text(f"gitdir: {victim.folder}\n")
    assert "does not name this folder" in refusal(thief)
    (thief / ".git").unlink()
    (thief / ".git").symlink_to(victim.folder)
    assert "is a link" in refusal(thief)
    (thief / ".git").unlink()
    own = MadeRepository(thief)
    own.commit({"a.py": "a = 1\n"})
    (own.folder / "objects/info").mkdir(exist_ok=True)
    (own.folder / "objects/info/alternates").write_text(f"{victim.folder}/objects\n")
    assert "alternates" in refusal(thief)
    (own.folder / "objects/info/alternates").unlink()
    (own.folder / "objects/aa").symlink_to(victim.folder / "objects/aa")
    assert "a link is among the objects" in refusal(thief)
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
    assert "does not name this folder" in refusal(thief)


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
    made = MadeRepository(tmp_path / "shop")
    oid = made.blob(b"x = 1\n")
    made.commit_tree({b"a.py": (0o100644, oid)}, "refs/heads/bomb")
    path = made.folder / "objects" / str(oid)[:2] / str(oid)[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 6\0" + bytes(50_000_000)))
    with pytest.raises(ListingFailed, match="damaged"):
        list(made.source("bomb").list())
