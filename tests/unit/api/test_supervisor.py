"""Workers in separate processes, which are restarted."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.slow

_PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from rag_assets.api.supervisor import WorkerSupervisor
from rag_assets.common.errors import RagAssetsError

folder = Path(sys.argv[1])

def work(number, line):
    {begin}
    (folder / f"{{number}}-{{os.getpid()}}").touch()
    line.send(b".")
    line.recv(1)

def report(number, why):
    print(f"{{number}}: {{why}}", flush=True)

try:
    WorkerSupervisor(2, work, stop_seconds=2, report=report).run()
except KeyboardInterrupt:
    sys.exit(130)
except RagAssetsError as error:
    print(error.message)
    sys.exit(1)
"""


@contextmanager
def supervised(folder: Path, begin: str = "pass") -> Iterator[subprocess.Popen[str]]:
    program = textwrap.dedent(_PROGRAM).format(begin=begin)
    command = [sys.executable, "-c", program, str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def starts_of(folder: Path, number: int) -> list[int]:
    return [int(path.name.split("-")[1]) for path in folder.glob(f"{number}-*")]


def eventually(condition: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_killed_worker_is_replaced_and_the_other_left_alone(tmp_path: Path) -> None:
    with supervised(tmp_path) as process:
        eventually(lambda: len(starts_of(tmp_path, 0)) == len(starts_of(tmp_path, 1)) == 1)
        [first], [other] = starts_of(tmp_path, 0), starts_of(tmp_path, 1)
        os.kill(first, signal.SIGKILL)
        eventually(lambda: len(starts_of(tmp_path, 0)) == 2)
        assert psutil.pid_exists(other)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert out == "0: signal 9\n"
    assert starts_of(tmp_path, 1) == [other]
    assert not any(map(psutil.pid_exists, [*starts_of(tmp_path, 0), other]))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_ends_when_it_is_told_to(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with supervised(tmp_path) as process:
        eventually(lambda: len(starts_of(tmp_path, 0)) == len(starts_of(tmp_path, 1)) == 1)
        process.send_signal(number)
        assert process.wait(30) == code
    assert not any(map(psutil.pid_exists, starts_of(tmp_path, 0) + starts_of(tmp_path, 1)))


def test_a_worker_that_does_not_end_is_killed(tmp_path: Path) -> None:
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    with supervised(tmp_path, deaf) as process:
        eventually(lambda: len(starts_of(tmp_path, 0)) == len(starts_of(tmp_path, 1)) == 1)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert time.monotonic() - began > 1.5
    assert not any(map(psutil.pid_exists, starts_of(tmp_path, 0) + starts_of(tmp_path, 1)))


def test_workers_end_with_a_killed_supervisor(tmp_path: Path) -> None:
    with supervised(tmp_path) as process:
        eventually(lambda: len(starts_of(tmp_path, 0)) == len(starts_of(tmp_path, 1)) == 1)
        process.kill()
        process.wait()
    pids = starts_of(tmp_path, 0) + starts_of(tmp_path, 1)
    eventually(lambda: not any(map(_lives, pids)))


def test_it_fails_if_no_worker_can_begin(tmp_path: Path) -> None:
    with supervised(tmp_path, "sys.exit(3)") as process:
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (1, "no worker could start\n")


def test_a_worker_that_dies_again_and_again_is_replaced_ever_later(tmp_path: Path) -> None:
    begin = "(folder / 'broken').exists() and sys.exit(7)"
    with supervised(tmp_path, begin) as process:
        eventually(lambda: len(starts_of(tmp_path, 0)) == len(starts_of(tmp_path, 1)) == 1)
        # A worker leaves its mark before the supervisor hears of it.
        time.sleep(1)
        (tmp_path / "broken").touch()
        os.kill(starts_of(tmp_path, 0)[0], signal.SIGKILL)
        time.sleep(3)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    lines = out.splitlines()
    assert lines[:2] == ["0: signal 9", "0: exit code 7"]
    assert len(lines) < 6


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
