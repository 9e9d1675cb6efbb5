"""The change watcher of an installation: `python -m rag_assets.cli.change_watcher`."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.forkserver.client import start_fork
from rag_assets.forkserver.protocol import SYNC
from rag_assets.privacy.masker import get_masker
from rag_assets.runtime.program_processes import revive_fork_server
from rag_assets.runtime.stack import LocalStack
from rag_assets.runtime.watcher import Watcher
from rag_assets.storage.installation.identity import open_catalog


class ForkedFollower:
    """A fork of the fork server, which syncs each tenant passed to `follow` until it is closed."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("r", encoding="utf-8")

    @classmethod
    def open(cls, settings: Settings) -> ForkedFollower | None:
        """Start a follower; if no fork server answers, restart it and return None."""
        own_end, fork_end = socket.socketpair()
        with fork_end:
            fork = start_fork(
                str(settings.home), SYNC, [], os.environ, descriptors=[fork_end.fileno()]
            )
        if fork is None:
            own_end.close()
            revive_fork_server(settings)
            return None
        fork.close()
        return cls(own_end)

    def follow(self, tenant_id: str, *, is_changed: bool) -> float | None:
        """See rag_assets.runtime.sync_lanes.Follower."""
        line = json.dumps({"tenant_id": tenant_id, "is_changed": is_changed})
        self._connection.sendall(line.encode() + b"\n")
        answer = self._answers.readline()
        if not answer:
            raise ConnectionResetError("the fork has ended")
        seconds: float | None = json.loads(answer)
        return seconds

    def close(self) -> None:
        """Close the connection, so that the fork ends."""
        self._answers.close()
        self._connection.close()


def main() -> None:
    """Watch for changes until SIGTERM."""
    settings = Settings.from_environment()
    masker = get_masker(settings.local)

    def log(line: str) -> None:
        with suppress(OSError):  # Syncs must continue if the disk is full.
            sys.stderr.write(masker.text(line) + "\n")
            sys.stderr.flush()

    try:
        stack = LocalStack(settings)
        endpoints = stack.endpoints()
        catalog, _ = open_catalog(
            settings,
            endpoints.database_url,
            endpoints.owner_url,
            before_upgrade=stack.require_no_older_process,
        )
    except RagAssetsError as error:
        log(f"error: {error.advice}")
        sys.exit(1)
    watcher = Watcher(catalog, settings, lambda: ForkedFollower.open(settings), log)
    signal.signal(signal.SIGTERM, lambda *_: watcher.stop())
    watcher.run()


if __name__ == "__main__":
    main()
