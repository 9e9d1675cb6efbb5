"""The supervisor of an installation's servers: `python -m rag_assets.cli.supervisor`."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress

from rag_assets.common.settings import Settings
from rag_assets.runtime.stack import LocalStack
from rag_assets.runtime.supervisor import RestartFile, Supervisor


def main() -> None:
    """Supervise the embedded servers until stopped."""
    settings = Settings.from_environment()

    def log(line: str) -> None:
        with suppress(OSError):  # Restarts must continue if the disk is full.
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    supervisor = Supervisor(LocalStack(settings).embedded_servers(), RestartFile(settings), log)
    signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
    supervisor.run()


if __name__ == "__main__":
    main()
