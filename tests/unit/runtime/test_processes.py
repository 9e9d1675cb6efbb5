"""Background processes, tested with small programs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.runtime.processes import BackgroundProcess, ProcessRecord
from tests.namespaces import needs_namespaces, start_in_namespace

SLEEP = "import time; print('ready', flush=True); time.sleep(60)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BackgroundProcess]:
    process = BackgroundProcess(
        "Sleeper", pid_file=tmp_path / "sleeper.pid", log_file=tmp_path / "logs" / "sleeper.log"
    )
    yield process
    process.stop(timeout=1)


def start(server: BackgroundProcess, code: str = SLEEP, *, timeout: float = 10) -> ProcessRecord:
    with server.lock():
        return server.start(
            [sys.executable, "-c", code], env={"PATH": os.environ["PATH"], "GIVEN": "yes"},
            healthy=lambda: b"ready" in server.log_file.read_bytes(), timeout=timeout, port=1234,
        )  # fmt: skip


def test_a_server_runs_in_its_own_session_and_environment(server: BackgroundProcess) -> None:
    record = start(server)
    running = psutil.Process(record.pid)
    assert server.find() == record
    assert os.getsid(record.pid) == record.pid
    assert running.environ()["GIVEN"] == "yes"
    assert "HOME" not in running.environ()
    assert Path(f"/proc/{record.pid}/fd/0").resolve() == Path("/dev/null")
    assert json.loads(server.pid_file.read_text())["port"] == 1234
    assert server.pid_file.stat().st_mode & 0o077 == 0


def test_stopping_ends_it_and_is_repeatable(server: BackgroundProcess) -> None:
    record = start(server)
    assert server.stop() is True
    assert not psutil.pid_exists(record.pid)
    assert server.find() is None
    assert not server.pid_file.exists()
    assert server.stop() is False


def test_a_recycled_pid_is_neither_found_nor_signalled(server: BackgroundProcess) -> None:
    record = start(server)
    foreign = replace(record, birth="another boot/1")
    server.pid_file.write_text(json.dumps(asdict(foreign)))
    assert server.find() is None
    assert server.stop() is False
    assert psutil.Process(record.pid).is_running()
    server.pid_file.write_text(json.dumps(asdict(record)))
    assert server.stop() is True


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', "null"])
def test_a_damaged_pid_file_counts_as_not_running(server: BackgroundProcess, content: str) -> None:
    server.pid_file.write_text(content)
    assert server.find() is None
    assert server.stop() is False
    assert not server.pid_file.exists()


def test_one_that_ignores_the_request_is_killed(server: BackgroundProcess) -> None:
    record = start(server, "import signal; signal.signal(15, signal.SIG_IGN); " + SLEEP)
    begun = time.monotonic()
    assert server.stop(timeout=0.3) is True
    assert time.monotonic() - begun < 5
    assert not psutil.pid_exists(record.pid)


def test_children_of_a_server_end_with_it(server: BackgroundProcess) -> None:
    child = "import subprocess as s, sys; p = s.Popen([sys.executable, '-c', 'import time; "
    record = start(server, child + "time.sleep(60)']); print(p.pid, flush=True); " + SLEEP)
    child_pid = int(server.log_file.read_text().split()[0])
    assert os.getpgid(child_pid) == record.pid
    server.stop()
    ended = not psutil.pid_exists(child_pid)
    assert ended or psutil.Process(child_pid).status() == psutil.STATUS_ZOMBIE


def test_a_failed_start_quotes_the_log_without_stack_frames(server: BackgroundProcess) -> None:
    code = "print('\\x1b[31mcannot open the index\\x1b[0m\\n\\tat org.Frame(Frame.java)'); exit(3)"
    with pytest.raises(ServiceUnavailable) as caught:
        start(server, code)
    said = "Sleeper ended while starting; its log ends with:\n  cannot open the index"
    assert caught.value.message == said
    assert str(server.log_file) in (caught.value.hint or "")
    assert not server.pid_file.exists()


@pytest.mark.slow
def test_one_that_never_answers_is_ended(server: BackgroundProcess) -> None:
    with pytest.raises(ServiceUnavailable, match=r"did not answer within 4 s; its log ends"):
        start(server, "import time; print('waiting', flush=True); time.sleep(60)", timeout=4)
    assert server.find() is None


def test_a_missing_program_is_reported(server: BackgroundProcess) -> None:
    with server.lock(), pytest.raises(ServiceUnavailable, match="Sleeper could not be started"):
        server.launch(["/nowhere/program"], env={})


def test_a_server_that_cannot_be_recorded_is_ended(server: BackgroundProcess) -> None:
    server.pid_file.mkdir()
    before = psutil.Process().children()
    with server.lock(), pytest.raises(ServiceUnavailable, match="could not be recorded in") as e:
        server.launch([sys.executable, "-c", SLEEP], env={})
    server.pid_file.rmdir()
    assert "writable" in (e.value.hint or "")
    assert str(server.pid_file) in e.value.message
    _, running = psutil.wait_procs(set(psutil.Process().children()) - {*before}, timeout=10)
    assert not running


def test_a_long_log_is_rotated_once(server: BackgroundProcess) -> None:
    server.log_file.parent.mkdir()
    server.log_file.write_bytes(b"x" * (8 * 1024 * 1024 + 1))
    start(server)
    assert server.log_file.read_text() == "ready\n"
    assert server.log_file.with_name("sleeper.log.1").stat().st_size > 8 * 1024 * 1024


FULL_LOGS = """
import subprocess, sys
from pathlib import Path
from rag_assets.common.errors import ServiceUnavailable
from rag_assets.runtime.processes import BackgroundProcess
folder = Path(sys.argv[1])
logs = folder / "logs"
logs.mkdir()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", logs], check=True)
filler = ["dd", "if=/dev/zero", f"of={logs / 'filler'}", "bs=4k"]
subprocess.run(filler, capture_output=True)
server = BackgroundProcess("Sleeper", pid_file=folder / "a.pid", log_file=logs / "a.log")
command = [sys.executable, "-c", "import time; time.sleep(60)"]
try:
    server.launch(command, env={})
except ServiceUnavailable as error:
    print(error.message, error.hint, sep="\\n")
print(server.find(), server.log_file.stat().st_size)
(logs / "filler").unlink()
print(server.launch(command, env={}) == server.find(), server.log_file.stat().st_size)
"""


@needs_namespaces
@pytest.mark.slow
def test_a_full_folder_of_logs_is_named_before_a_server_starts(tmp_path: Path) -> None:
    out, _ = start_in_namespace(FULL_LOGS, tmp_path).communicate(timeout=30)
    error, hint, failed, started = out.splitlines()
    assert error == "Sleeper could not be started: [Errno 28] No space left on device"
    assert hint.startswith(f"free disk space for its log {tmp_path}/logs/a.log,")
    assert (failed, started) == ("None 0", "True 0")


@pytest.mark.slow
def test_it_outlives_the_command_that_started_it(server: BackgroundProcess) -> None:
    command = [sys.executable, "-c", STARTER, str(server.pid_file), str(server.log_file)]
    starter = subprocess.run(command, capture_output=True, text=True, check=True)
    record = server.find()
    assert record is not None
    assert int(starter.stdout) == record.pid
    assert server.stop() is True


def test_pipes_of_a_killed_command_close_while_its_server_runs(server: BackgroundProcess) -> None:
    code = f"{STARTER}\nsys.stdout.flush()\nimport time\ntime.sleep(60)"
    command = [sys.executable, "-c", code, str(server.pid_file), str(server.log_file)]
    starter = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.kill()
    assert starter.communicate(timeout=10) == (b"", b"")
    record = server.find()
    assert record is not None
    assert record.pid == pid


def test_one_that_lost_its_record_keeps_others_from_starting(
    server: BackgroundProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, kept = start(server), server.pid_file.read_text()
    server.pid_file.unlink()
    monkeypatch.setattr("rag_assets.runtime.processes._ORPHAN_SECONDS", 0.2)
    with pytest.raises(ServiceUnavailable, match="another process uses") as caught:
        start(server)
    assert str(server.pid_file.with_suffix(".running")) in (caught.value.hint or "")
    assert psutil.Process(record.pid).is_running()
    server.pid_file.write_text(kept)
    assert server.stop() is True
    assert start(server).pid != record.pid


def test_a_child_that_is_left_behind_keeps_others_from_starting(
    server: BackgroundProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import os, time; child = os.fork(); child or os.setsid();"
        " child and print('ready', flush=True); time.sleep(60)"
    )
    record = start(server, code)
    child = psutil.Process(record.pid).children()[0]
    os.kill(record.pid, signal.SIGKILL)
    monkeypatch.setattr("rag_assets.runtime.processes._ORPHAN_SECONDS", 0.2)
    with pytest.raises(ServiceUnavailable, match="another process uses"):
        start(server)
    child.kill()
    assert start(server).pid != record.pid


@pytest.mark.slow
def test_two_commands_at_once_start_one(server: BackgroundProcess) -> None:
    command = [sys.executable, "-c", STARTER, str(server.pid_file), str(server.log_file)]
    starters = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    pids = {int(starter.communicate()[0]) for starter in starters}
    assert len(pids) == 1
    assert server.log_file.read_text().count("ready") == 1


STARTER = f"""
import sys
from pathlib import Path
from rag_assets.runtime.processes import BackgroundProcess
log = Path(sys.argv[2])
server = BackgroundProcess("Sleeper", pid_file=Path(sys.argv[1]), log_file=log)
with server.lock():
    record = server.find() or server.start(
        [sys.executable, "-c", {SLEEP!r}],
        env={{}},
        healthy=lambda: b"ready" in log.read_bytes(),
        timeout=10,
    )
print(record.pid)
"""


def test_whoever_leaves_a_server_behind_is_not_warned() -> None:
    program = (
        "import subprocess, sys\n"
        "from rag_assets.runtime.liveness import adopt_child\n"
        "child = subprocess.Popen(['sleep', '30'], stdout=-3, stderr=-3)\n"
        "adopt_child(child)\n"
        "print(child.pid)\n"
    )
    command = [sys.executable, "-W", "always::ResourceWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    os.kill(int(done.stdout), 0)  # It goes on.
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.stderr == ""
