"""A fork server with simple commands, for tests: `small_server.py HOME MODULES LOCK`."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rag_assets.forkserver.protocol import COMMAND, RUN, SOCKET
from rag_assets.forkserver.server import Fingerprint, ForkServer, restart_process


def command(arguments: Sequence[str]) -> None:
    """Execute the command that the first argument names."""
    match arguments:
        case ["tell"]:
            sys.stdout.write(f"{Path.cwd()} {os.environ['GIVEN']} {os.umask(0):o} {os.getsid(0)}\n")
        case ["echo"]:
            sys.stdout.write(sys.stdin.read())
            sys.stderr.write("Fehler: ä\n")
        case ["exit", code]:
            raise SystemExit(int(code))
        case ["fail"]:
            raise ValueError("a failure")
        case ["version"]:
            import versioned

            sys.stdout.write(f"{versioned.VERSION}\n")
        case ["kill", number]:
            os.kill(os.getpid(), int(number))
        case ["write", path]:
            Path(path).write_text("begun")
        case ["wait", path]:
            _wait(Path(path))


def run(arguments: Sequence[str]) -> None:
    """Write a file, as a run."""
    Path(arguments[0]).write_text(os.environ["GIVEN"])


def _wait(path: Path) -> None:
    """Write the pid, and wait for a signal or for the removal of the file."""
    try:
        path.write_text(str(os.getpid()))
        while path.exists():
            time.sleep(0.02)
        sys.stdout.write("waited\n")
    except KeyboardInterrupt:
        sys.stdout.write("interrupted\n")
        raise SystemExit(130) from None


def main() -> None:
    """Serve until stopped; start again when the code changes."""
    home, folder, lock = sys.argv[1:]
    sys.path.insert(0, folder)
    import versioned  # noqa: F401  (what a test changes)

    signal.alarm(300)  # A test that hangs must not leave it behind.
    executors = {COMMAND: command, RUN: run}
    server = ForkServer(
        Path(home) / SOCKET, Fingerprint(), executors, not_for_forks=[int(lock)],
        refused_commands={"own"},
    )  # fmt: skip
    if server.serve():
        restart_process()


if __name__ == "__main__":
    main()
