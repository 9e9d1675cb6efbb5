"""Commands in forks have the same output as the commands themselves."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag_assets.forkserver.client import start_fork
from rag_assets.forkserver.protocol import (
    COMMAND,
    RUN,
    SOCKET,
    Replies,
    Request,
    connect,
    send_request,
)
from tests.namespaces import needs_namespaces, start_command_in_namespace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses pidfd and SO_PEERCRED")

ROOT = Path(__file__).resolve().parents[3]
CLIENT = """
import os, sys
from rag_assets.forkserver.client import run_command
code = run_command(sys.argv[1], sys.argv[2:])
if code is None:
    os.write(1, b"not run\\n")
    code = 77
sys.exit(code)
"""
NOT_RUN = 77


def wait_for(condition: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


@dataclass
class Small:
    """A fork server with its home folder, and its clients."""

    home: Path
    code: Path
    process: subprocess.Popen[bytes]

    def is_locked(self) -> bool:
        with (self.home / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        return {**kept, "PYTHONPATH": str(ROOT), "GIVEN": "this"}

    def start(self, *arguments: str, **options: object) -> subprocess.Popen[bytes]:
        settings: Mapping[str, object] = {"env": self.environment, **options}
        return subprocess.Popen(
            [sys.executable, "-c", CLIENT, str(self.home), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **settings,  # type: ignore[call-overload]
        )

    def run(self, *arguments: str, given: bytes = b"", **options: object) -> tuple[int, str, str]:
        client = self.start(*arguments, stdin=subprocess.PIPE, **options)
        out, err = client.communicate(given, timeout=30)
        return client.returncode, out.decode(), err.decode()

    def start_waiting(self, path: Path) -> subprocess.Popen[bytes]:
        """Start a command that writes its pid into a file and waits until the file is gone."""
        client = self.start("wait", str(path))
        wait_for(lambda: path.exists() and path.read_text())
        return client

    def answers(self) -> bool:
        try:
            connect(str(self.home / SOCKET), 1).close()
        except OSError:
            return False
        return True


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Small]:
    # Longer than the path of a socket may be.
    home = tmp_path / ("long" * 30)
    code = tmp_path / "code"
    home.mkdir()
    code.mkdir()
    (code / "versioned.py").write_text("VERSION = 1\n")
    server = Small(home, code, None)  # type: ignore[arg-type]
    command = [sys.executable, "-B", "-m", "tests.unit.forkserver.small_server"]
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server.process = subprocess.Popen(
            [*command, str(home), str(code), str(lock.fileno())],
            cwd=ROOT,
            env={**server.environment, "GIVEN": "the server's"},
            pass_fds=[lock.fileno()],
        )
    try:
        wait_for(server.answers)
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def test_a_command_has_environment_and_streams_of_its_client(small: Small, tmp_path: Path) -> None:
    code, out, _ = small.run("tell", cwd=tmp_path, umask=0o027)
    folder, given, umask, session = out.split()
    assert (code, folder, given, umask) == (0, str(tmp_path), "this", "27")
    assert int(session) not in {os.getsid(0), small.process.pid}
    given = b"l\xc3\xa4nger\n" * 50_000
    assert small.run("echo", given=given) == (0, given.decode(), "Fehler: ä\n")


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_codes_come_back(small: Small, code: int) -> None:
    assert small.run("exit", str(code)) == (code, "", "")


def test_a_failure_is_printed_and_harms_nobody(small: Small) -> None:
    code, _, err = small.run("fail")
    assert code == 1
    assert err.endswith("ValueError: a failure\n")
    assert small.run("kill", str(int(signal.SIGKILL)))[0] == -signal.SIGKILL
    code, _, err = small.run("kill", str(int(signal.SIGSEGV)))
    assert (code, err) == (128 + signal.SIGSEGV, "error: the command was ended by SIGSEGV\n")
    assert small.run("exit", "0")[0] == 0


def test_output_that_cannot_be_written_is_an_error_as_ever(small: Small) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", CLIENT, str(small.home), "tell"]
    env = {**small.environment, "PYTHONUNBUFFERED": ""}
    client = subprocess.Popen(command, env=env, stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    assert client.wait(30) in {1, 120, NOT_RUN}


@pytest.mark.parametrize(
    ("number", "code", "output"),
    [(signal.SIGINT, 130, b"interrupted\n"), (signal.SIGTERM, -signal.SIGTERM, b"")],
)
def test_signals_are_passed_on(
    small: Small, tmp_path: Path, number: signal.Signals, code: int, output: bytes
) -> None:
    path = tmp_path / "pid"
    before = signal.signal(number, signal.SIG_DFL)  # A shell's background job ignores some.
    try:
        client = small.start_waiting(path)
    finally:
        signal.signal(number, before)
    client.send_signal(number)
    assert client.communicate(timeout=20)[0] == output
    assert client.returncode == code


def test_a_signal_that_the_client_ignores_is_ignored(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        client = small.start_waiting(path)
    finally:
        signal.signal(signal.SIGTERM, before)
    os.kill(int(path.read_text()), signal.SIGTERM)
    path.unlink()
    assert client.communicate(timeout=20)[0] == b"waited\n"


def test_a_killed_client_takes_its_command_with_it(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    client = small.start_waiting(path)
    client.kill()
    client.communicate(timeout=20)
    pid = int(path.read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    assert small.run("exit", "0")[0] == 0


def test_a_killed_server_leaves_commands_alone(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    client = small.start_waiting(path)
    assert small.is_locked()
    small.process.kill()
    small.process.wait()
    assert not small.is_locked(), "another server can start while the command goes on"
    path.unlink()
    assert client.communicate(timeout=20)[0] == b"waited\n"
    assert client.returncode == 0
    assert small.run("exit", "0") == (NOT_RUN, "not run\n", "")


def test_changed_code_is_never_executed_as_it_was(small: Small) -> None:
    assert small.run("version") == (0, "1\n", "")
    (small.code / "versioned.py").write_text("VERSION = 22\n")
    assert small.run("version") == (NOT_RUN, "not run\n", ""), "the client does it itself"
    wait_for(small.answers)
    assert small.is_locked(), "the server that began anew is the same process"
    assert small.run("version") == (0, "22\n", "")
    (small.code / "another.py").write_text("")
    assert small.run("version")[0] == NOT_RUN, "a new module may have to be loaded"


def test_a_refused_command_is_run_by_its_client(small: Small) -> None:
    assert small.run("own", "exit", "0") == (NOT_RUN, "not run\n", "")
    assert small.run("exit", "3")[0] == 3


def test_what_libraries_read_at_import_must_be_the_same(small: Small) -> None:
    other = {**small.environment, "POLARS_MAX_THREADS": "1"}
    assert small.run("exit", "0", env=other)[0] == NOT_RUN
    assert small.run("exit", "0", env={**small.environment, "COLUMNS": "80"})[0] == 0


def test_nothing_is_done_for_a_client_that_gives_up(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "written"
    streams = [("utf-8", "strict", False, False)] * 3
    request = Request(COMMAND, ["write", str(path)], small.environment, 0o22, streams)  # type: ignore[arg-type]
    folder = os.open(tmp_path, os.O_RDONLY)
    with connect(str(small.home / SOCKET), 5) as connection:
        send_request(connection, request, [folder, 0, 1, 2])
        pid = Replies(connection).read_next()["pid"]
    os.close(folder)
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    assert not path.exists()


def test_a_run_outlives_its_client(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "run"
    started: list[int] = []
    environment = {**small.environment, "PYTHONWARNINGS": "ignore"}
    connection = start_fork(str(small.home), RUN, [str(path)], environment, started.append)
    assert connection is not None
    assert Replies(connection).read_next() == {"exit": 0}
    assert Replies(connection).read_next() == {}, "its end is the connection's"
    connection.close()
    wait_for(lambda: path.exists() and path.read_text() == "this")
    assert len(started) == 1
    small.process.kill()
    small.process.wait()
    assert start_fork(str(small.home), RUN, [str(path)], environment, started.append) is None
    assert len(started) == 1


def test_what_is_no_request_harms_nobody(small: Small) -> None:
    for nonsense in (b"", b"\0", b"\0\0\0\2{}", b"\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n"):
        with connect(str(small.home / SOCKET), 5) as connection:
            connection.sendall(nonsense)
    assert small.run("exit", "0")[0] == 0


def test_only_its_user_can_connect(small: Small) -> None:
    path = small.home / SOCKET
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@needs_namespaces
def test_a_server_of_another_container_is_not_used(tmp_path: Path) -> None:
    home, code = tmp_path / "home", tmp_path / "code"
    for folder in (home, code):
        folder.mkdir()
    (code / "versioned.py").write_text("VERSION = 1\n")
    server = Small(home, code, None)  # type: ignore[arg-type]
    command = [sys.executable, "-B", "-m", "tests.unit.forkserver.small_server"]
    command += [str(home), str(code), "0"]
    container = start_command_in_namespace(command, server.environment)
    try:
        wait_for(server.answers)
        # Its small pids are those of other processes here, which signals would be sent to.
        assert server.run("exit", "0") == (NOT_RUN, "not run\n", "")
        assert start_fork(str(home), RUN, [str(tmp_path / "run")], server.environment) is None
    finally:
        container.kill()
        container.communicate()


def test_it_ends_when_told_and_takes_its_socket_along(small: Small) -> None:
    small.process.terminate()
    assert small.process.wait(20) == 0
    assert not (small.home / SOCKET).exists()
