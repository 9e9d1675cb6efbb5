"""The files in an installation's home folder, on a machine with other users."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.settings import Settings
from rag_assets.runtime.liveness import wait_until
from rag_assets.runtime.postgres import EmbeddedPostgres
from rag_assets.runtime.private_files import keep_private, list_exposed
from rag_assets.runtime.processes import BackgroundProcess
from rag_assets.runtime.stack import LocalStack
from tests.installation import FAST, Installation
from tests.servers import server_directory

NOBODY, SOMEBODY = 65_534, 54_321
OTHERS = 0o077
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077, 0o777])
def test_a_new_folder_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        keep_private(tmp_path / ".local")
    assert mode(tmp_path / ".local") == 0o700
    assert list_exposed(tmp_path / ".local") == []


def test_files_that_an_earlier_version_left_readable_are_closed(tmp_path: Path) -> None:
    local = tmp_path / ".local"
    for name in ("lake", "elasticsearch", "dagster", "data_docs", "logs", "cache"):
        (local / name).mkdir(parents=True)
        (local / name).chmod(0o755)
    (local / "note.json").write_text("{}")
    (local / "note.json").chmod(0o666)
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (local / "link").symlink_to(outside)
    local.chmod(0o777)
    assert len(list_exposed(local)) == 8
    keep_private(local)
    assert list_exposed(local) == []
    assert {mode(path) & OTHERS for path in local.iterdir() if not path.is_symlink()} == {0}
    assert mode(local) == 0o700
    assert mode(outside) == 0o755, "nothing outside is touched"


def test_a_whole_installation_is_private_after_a_sync(installation: Installation) -> None:
    folder = installation.add_tenant("quiet", **FAST)
    (folder / "note.md").write_text("The plans of the next quarter.\n")
    local = installation.home / ".local"
    with umask(0):
        assert installation.cli("sync", "quiet", "--json").code == 0
    assert mode(local) == 0o700
    assert list_exposed(local) == []
    assert (local / "lake").is_dir()


def test_status_warns_and_the_next_command_repairs(installation: Installation) -> None:
    local = installation.home / ".local"
    (local / "lake").mkdir(parents=True)
    local.chmod(0o755)
    (local / "lake").chmod(0o755)
    told = installation.cli("status")
    assert f"other users of this machine can open {local}\n" in told.out
    assert installation.cli("status", "--json").json["exposed"] == [str(local), f"{local}/lake"]
    assert installation.cli("tenants", "list").code == 0
    assert mode(local) == mode(local / "lake") == 0o700
    assert installation.cli("status", "--json").json["exposed"] == []


def test_status_warns_of_a_lake_elsewhere(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir(mode=0o755)
    (tmp_path / "home").mkdir()
    stack = LocalStack(Settings(home=tmp_path / "home", lake_url=str(lake)))
    assert stack.list_exposed() == [lake]
    lake.chmod(0o700)
    assert stack.list_exposed() == []
    assert not (tmp_path / "home" / ".local").exists()


def test_a_home_that_cannot_be_used_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    with pytest.raises(ConfigurationError, match="cannot be created") as caught:
        keep_private(tmp_path / "file" / ".local")
    assert "RAG_ASSETS_HOME" in (caught.value.hint or "")


# As another user


def acting(user: int, work: Callable[[], None]) -> int:
    """Call a function in a child process as another user; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that every user can enter; pytest's own folders are closed to others."""
    with server_directory() as folder:
        folder.chmod(0o755)
        yield folder


@as_root
def test_another_users_home_is_refused_with_one_clear_error(open_folder: Path) -> None:
    theirs, roots, ours = (open_folder / name for name in ("theirs", "roots", "ours"))
    for home, owner in ((theirs, SOMEBODY), (roots, 0), (ours, NOBODY)):
        home.mkdir()
        home.chmod(0o755)
        os.chown(home, owner, owner)
    theirs.chmod(0o777)
    held = open_folder / "held"
    held.mkdir()
    keep_private(held / ".local")

    def require_refused() -> None:
        for home in (theirs, roots, held):
            with pytest.raises(ConfigurationError) as caught:
                keep_private(home / ".local")
            assert "\n" not in caught.value.message
            assert "RAG_ASSETS_HOME" in (caught.value.hint or "")
        with pytest.raises(ConfigurationError, match="belongs to user 0"):
            list_exposed(held / ".local")
        keep_private(ours / ".local")
        assert mode(ours / ".local") == 0o700

    assert acting(NOBODY, require_refused) == 0
    assert list(theirs.iterdir()) == list(roots.iterdir()) == []


@as_root
def test_postgres_runs_in_a_folder_closed_to_other_users(open_folder: Path) -> None:
    """Postgres refuses to run as root, and its account must be able to enter root's folders."""
    local = open_folder / ".local"
    keep_private(local)
    (local / "lake").mkdir(mode=0o700)
    (local / "lake" / "texts").write_text("private")
    server = EmbeddedPostgres(local / "postgres")
    server.start()
    server.stop()
    account = (local / "postgres" / "data").stat()
    assert account.st_uid != 0
    for folder in (local, local / "postgres"):
        assert (mode(folder), folder.stat().st_gid) == (0o710, account.st_gid)
    assert list_exposed(local) == []
    # An earlier version left it so that everybody could enter.
    local.chmod(0o711)
    assert list_exposed(local) == [local]
    keep_private(local)
    assert mode(local) == 0o710
    server.start()
    server.stop()

    def require_closed() -> None:
        for path in ("lake/texts", "postgres/server.json", "postgres/data/PG_VERSION"):
            with pytest.raises(PermissionError):
                (local / path).read_text()
        with pytest.raises(PermissionError):
            list(local.iterdir())

    assert acting(SOMEBODY, require_closed) == 0


def test_servers_make_private_files(open_folder: Path) -> None:
    """The umask of the starting command has no effect, also on Dagster's sockets and runs."""
    process = BackgroundProcess(
        "writer", pid_file=open_folder / "writer.pid", log_file=open_folder / "writer.log"
    )
    made = open_folder / "made"
    code = f"from pathlib import Path; Path({str(made)!r}).write_text('x'); input()"
    with umask(0):
        process.launch([sys.executable, "-c", code], env=dict(os.environ))
    assert wait_until(made.is_file, 20)
    process.stop_locked(timeout=5)
    assert mode(made) == 0o600
