"""The fork server of parser processes: `python -m rag_assets.ingest.workers.fork_server`.

It is separate from the process from which commands are forked, so that a document that takes over a
parser finds no key in memory. It has the reduced environment of parsers, and exits when its
standard input closes.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path

from rag_assets.forkserver.protocol import COMMAND
from rag_assets.forkserver.server import Fingerprint, ForkServer
from rag_assets.ingest.workers.worker import prepare, prepare_chunking, serve
from rag_assets.privacy.secrets.scanner import SecretScanner


def main() -> None:
    """Load the libraries that all documents need, then fork a parser at each request.

    The command's arguments are the path of the server's socket, and a cache folder.
    """
    socket, cache = (Path(argument) for argument in sys.argv[1:])
    scanner = SecretScanner(cache)
    prepare(scanner)
    prepare_chunking()
    gc.collect()
    gc.freeze()

    def execute(_arguments: Sequence[str]) -> None:
        serve(lambda cache, seconds: SecretScanner(cache, timeout=seconds))

    ForkServer(socket, Fingerprint(), {COMMAND: execute}, parent=sys.stdin.fileno()).serve()


if __name__ == "__main__":
    main()
