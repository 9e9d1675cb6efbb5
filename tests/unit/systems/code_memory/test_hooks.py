"""Git hooks: installed next to others, which still run, and removed without a trace."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.runtime.watch_report import HookedTenants, get_hooked_folder
from rag_assets.systems.code_memory.hooks import (
    NAMES,
    build_hook,
    build_hook_block,
    find_hooks_folder,
    install_hooks,
    remove_hooks,
)

SHELLS = [name for name in ("dash", "bash", "zsh", "ksh", "busybox") if shutil.which(name)]
GIT = shutil.which("git")


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = tmp_path / "shop's code"
    for name in ("objects", "refs"):
        (made / ".git" / name).mkdir(parents=True)
    (made / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (made / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
    return made


@pytest.fixture
def local(tmp_path: Path) -> Path:
    return tmp_path / "home of $it" / ".local"


def put(hook: Path, text: str | bytes, mode: int = 0o755) -> None:
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_bytes(text.encode() if isinstance(text, str) else text)
    hook.chmod(mode)


def run(*command: str | Path, said: str = "") -> tuple[int, str, str]:
    """Return the exit code, output and errors of a command, such as the path of a hook."""
    done = subprocess.run(
        [*map(str, command)], input=said, capture_output=True, text=True, check=False, timeout=20
    )
    return done.returncode, done.stdout, done.stderr


SILENT = (0, "", "")


def contents(folder: Path) -> Mapping[str, tuple[bytes, int]]:
    return {one.name: (one.read_bytes(), one.lstat().st_mode & 0o777) for one in folder.iterdir()}


def test_each_hook_reports_its_tenant_alone(local: Path, repository: Path) -> None:
    installed = install_hooks(local, "shop", repository)
    assert (installed.folder, installed.hooks) == (repository / ".git" / "hooks", NAMES)
    told = HookedTenants(local)
    for name in NAMES:
        assert told.take() == frozenset()
        assert run(installed.folder / name) == SILENT
        assert told.take() == {"shop"}
    assert install_hooks(local, "shop", repository).hooks == ()
    assert remove_hooks("shop", repository).hooks == NAMES
    assert list(installed.folder.iterdir()) == []
    assert remove_hooks("shop", repository).hooks == ()


def test_hooks_of_two_tenants_stand_beside_each_other(local: Path, repository: Path) -> None:
    install_hooks(local, "shop", repository)
    install_hooks(local, "shop-2", repository)
    hook = repository / ".git" / "hooks" / "post-commit"
    assert run(hook) == SILENT
    assert HookedTenants(local).take() == {"shop", "shop-2"}
    remove_hooks("shop", repository)
    assert run(hook) == SILENT
    assert HookedTenants(local).take() == {"shop-2"}
    remove_hooks("shop-2", repository)
    assert not hook.exists()


def test_a_hook_that_became_a_link_is_changed_where_it_leads(local: Path, repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-commit"
    install_hooks(local, "shop", repository)
    managed = repository / ".git" / "managed-hook"
    hook.rename(managed)
    managed.chmod(0o750)
    hook.symlink_to(managed)
    install_hooks(local, "shop-2", repository)
    assert run(hook) == SILENT
    assert HookedTenants(local).take() == {"shop", "shop-2"}
    remove_hooks("shop", repository)
    assert hook.readlink() == managed
    assert managed.stat().st_mode & 0o777 == 0o750
    assert run(hook) == SILENT
    assert HookedTenants(local).take() == {"shop-2"}
    remove_hooks("shop-2", repository)
    assert not hook.is_symlink()


SCRIPTS = {
    "a shell": '#!/bin/sh\nread said\necho "$0 $1 $said"\nexit 3\n',
    "a strict shell": '#!/bin/sh -eu\nread said\necho "$0 $1 $said"\nexit 3\n',
    "a shell that is looked for": '#!/usr/bin/env bash\nread said\necho "$0 $1 $said"\nexit 3\n',
    "no first line": 'read said\necho "$0 $1 $said"\nexit 3\n',
}


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=list(SCRIPTS))
def test_a_script_of_a_shell_runs_as_before(local: Path, repository: Path, text: str) -> None:
    folder = repository / ".git" / "hooks"
    hook = folder / "post-rewrite"
    put(hook, text)
    before = contents(folder)
    install_hooks(local, "shop", repository)
    shell = [] if text.startswith("#!") else ["/bin/sh"]
    assert run(*shell, hook, "amend", said="old new\n")[:2] == (3, f"{hook} amend old new\n")
    assert HookedTenants(local).take() == {"shop"}
    remove_hooks("shop", repository)
    assert contents(folder) == before


OTHERS: Mapping[str, tuple[bytes, int]] = {
    "a script of another language": (
        b"#!/usr/bin/env python3\nimport sys\nprint(sys.argv[1], input())\nsys.exit(3)\n",
        0o755,
    ),
    "a script of a shell that is none of POSIX": (b"#!/bin/tcsh\necho x\n", 0o644),
    "a hook that is switched off": (b"#!/bin/sh\nexit 9\n", 0o644),
    "a program": (b"\x7fELF\0\0", 0o644),
}


@pytest.mark.parametrize(("content", "mode"), OTHERS.values(), ids=list(OTHERS))
def test_a_hook_that_can_hold_no_block_is_kept_beside(
    local: Path, repository: Path, content: bytes, mode: int
) -> None:
    folder = repository / ".git" / "hooks"
    hook = folder / "post-rewrite"
    put(hook, content, mode)
    before = contents(folder)
    installed = install_hooks(local, "shop", repository)
    assert installed.kept == ("post-rewrite",)
    expected = (3, "amend old new\n") if mode == 0o755 else (0, "")
    assert run(hook, "amend", said="old new\n")[:2] == expected
    assert HookedTenants(local).take() == {"shop"}
    assert install_hooks(local, "shop", repository).hooks == ()
    remove_hooks("shop", repository)
    assert contents(folder) == before


def test_a_link_is_kept_and_what_it_names_is_not_changed(local: Path, repository: Path) -> None:
    tracked = repository / "tools" / "after"
    put(tracked, "#!/bin/sh\necho tracked\n")
    hook = repository / ".git" / "hooks" / "post-merge"
    hook.parent.mkdir()
    hook.symlink_to("../../tools/after")
    install_hooks(local, "shop", repository)
    assert tracked.read_text() == "#!/bin/sh\necho tracked\n"
    assert run(hook)[1] == "tracked\n"
    remove_hooks("shop", repository)
    assert os.readlink(hook) == "../../tools/after"  # noqa: PTH115


@pytest.mark.parametrize("shell", SHELLS)
def test_a_hook_that_cannot_write_is_silent(local: Path, repository: Path, shell: str) -> None:
    hook = repository / ".git" / "hooks" / "post-commit"
    install_hooks(local, "shop", repository)
    shutil.rmtree(local)
    command = [shell, "sh"] if shell == "busybox" else [shell]
    assert run(*command, hook) == run(*command, "-e", hook) == SILENT
    put(hook, build_hook(build_hook_block("shop", "/proc/sys/no such place/shop"), None))
    assert run(*command, "-e", hook) == SILENT, "a file system that cannot be written"


def put_file_in_place_of(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("")


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "a file": lambda place: put_file_in_place_of(place.parent),
    "a folder": lambda place: place.mkdir(),
    "a pipe": os.mkfifo,
    "nothing": lambda place: shutil.rmtree(place.parents[1]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_hook_neither_waits_nor_fails_whatever_stands_at_its_place(
    local: Path, repository: Path, damage: Callable[[Path], object]
) -> None:
    install_hooks(local, "shop", repository)
    damage(get_hooked_folder(local) / "shop")
    hook = repository / ".git" / "hooks" / "post-commit"
    began = time.perf_counter()
    assert run(hook) == SILENT
    assert time.perf_counter() - began < 10


def test_a_hook_takes_a_few_milliseconds(local: Path, repository: Path) -> None:
    install_hooks(local, "shop", repository)
    hook = repository / ".git" / "hooks" / "post-commit"
    times = []
    for _ in range(10):
        began = time.perf_counter()
        run(hook)
        times.append(time.perf_counter() - began)
    assert min(times) < 0.05


PLACES = {
    "of the repository": (".git/config", "[core]\n\thooksPath = .git/own\n", ".git/own"),
    "of the user": ("../user/.gitconfig", '[core]\n\thookspath = "~/hooks"\n', "../user/hooks"),
}


@pytest.mark.parametrize(("file", "text", "place"), PLACES.values(), ids=list(PLACES))
def test_hooks_go_where_git_finds_them(
    local: Path, repository: Path, file: str, text: str, place: str
) -> None:
    put(repository / file, text, 0o644)
    installed = install_hooks(local, "shop", repository)
    assert installed.folder.resolve() == (repository / place).resolve()
    assert (installed.folder / "post-commit").exists()
    assert not (repository / ".git" / "hooks").exists()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".git/config", "[core]\n\thooksPath = {outside}\n"),
        (".git/config", "[core]\n\thooksPath = ../outside\n"),
        (".git/config", "[core]\n\thooksPath = .githooks\n"),
        (".git/config", "[core]\n\thooksPath = .git/linked\n"),
        ("../user/.gitconfig", "[core]\n\thooksPath = linked\n"),
        (".git/linked/unused", ""),
    ],
)
def test_a_repository_has_no_hook_written_out_of_its_git_folder(
    local: Path, repository: Path, file: str, text: str
) -> None:
    outside = repository.parent / "outside"
    outside.mkdir()
    (repository / ".githooks").mkdir()
    for link in (".git/linked", "linked"):
        (repository / link).symlink_to(outside)
    if text:
        put(repository / file, text.format(outside=outside), 0o644)
    else:
        (repository / ".git/hooks").symlink_to(outside)
    for change in (install_hooks, lambda _, *rest: remove_hooks(*rest)):
        with pytest.raises(ConfigurationError, match=r"outside of its \.git"):
            change(local, "shop", repository)
    assert not [*outside.iterdir(), *(repository / ".githooks").iterdir()]


def test_a_hook_linked_elsewhere_is_not_written_through(local: Path, repository: Path) -> None:
    install_hooks(local, "shop", repository)
    hook = repository / ".git/hooks/post-commit"
    elsewhere = repository.parent / "elsewhere"
    hook.rename(elsewhere)
    before = elsewhere.read_bytes()
    hook.symlink_to(elsewhere)
    with pytest.raises(ConfigurationError, match="is a link to"):
        install_hooks(local, "other", repository)
    assert elsewhere.read_bytes() == before
    remove_hooks("shop", repository)
    assert not hook.is_symlink()
    assert elsewhere.read_bytes() == before


def test_where_hooks_are_switched_off_none_is_installed(local: Path, repository: Path) -> None:
    put(repository / ".git" / "config", "[core]\n\thooksPath = /dev/null\n", 0o644)
    with pytest.raises(ConfigurationError, match="switched off"):
        install_hooks(local, "shop", repository)
    with pytest.raises(ListingFailed):
        install_hooks(local, "shop", repository / "objects")
    with pytest.raises(ConfigurationError, match="not the id of a tenant"):
        install_hooks(local, "../shop", repository)


@pytest.mark.skipif(GIT is None, reason="git is not installed")
def test_git_runs_hooks_in_every_worktree(local: Path, tmp_path: Path) -> None:
    top, other = tmp_path / "top", tmp_path / "other"
    told = HookedTenants(local)

    def git(*arguments: str, at: Path = top) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *names, *arguments], cwd=at, check=True, capture_output=True)

    top.mkdir()
    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    assert find_hooks_folder(top) == (top / ".git" / "hooks").resolve()
    install_hooks(local, "shop", top)
    git("commit", "-q", "--allow-empty", "-m", "second")
    assert told.take() == {"shop"}
    git("worktree", "add", "-q", str(other), "-b", "side")
    told.take()
    assert find_hooks_folder(other) == find_hooks_folder(top)
    for step in (
        ("commit", "-q", "--allow-empty", "-m", "third"),
        ("commit", "-q", "--amend", "--allow-empty", "-m", "third again"),
        ("checkout", "-q", "-b", "more"),
    ):
        git(*step, at=other)
        assert told.take() == {"shop"}, step
    git("merge", "-q", "more")
    assert told.take() == {"shop"}
