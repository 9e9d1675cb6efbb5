"""The change watcher of an installation: `python -m rag_assets.cli.change_watcher`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

from rag_assets.common.settings import Settings
from rag_assets.forkserver.client import start
from rag_assets.forkserver.protocol import SYNC
from rag_assets.local_stack.fork_server import revive
from rag_assets.local_stack.stack import LocalStack
from rag_assets.privacy.masker import masker_of
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.watch.watcher import Watcher


def main() -> None:
    """Watch until stopped."""
    settings = Settings.from_environment()
    masker = masker_of(settings.local)

    def log(line: str) -> None:
        sys.stderr.write(masker.text(line) + "\n")
        sys.stderr.flush()

    def sync(tenants: Sequence[str]) -> bool:
        connection = start(str(settings.home), SYNC, tenants, os.environ)
        if connection is None:
            revive(settings)
            return False
        with connection, suppress(OSError):
            while connection.recv(4096):
                pass
        return True

    catalog = Catalog.open(LocalStack(settings).endpoints().database_url)
    watcher = Watcher(catalog, settings, sync, log)
    signal.signal(signal.SIGTERM, lambda *_: watcher.stop())
    watcher.run()


if __name__ == "__main__":
    main()
