"""Receive files until this process is killed or has received all of them; see test_store.

Each file consists of one repeated line; its hash is printed when it is stored.
"""

import resource
import sys
from pathlib import Path

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.storage.blobs.store import BlobStore, FolderPlace

LINES = 40_000


def line_of(number: int) -> bytes:
    return f"{number:09d} the line of a file\n".encode()


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main(root: str, largest: int) -> None:
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    blobs = BlobStore(FolderPlace(Path(root))).tenant("acme", 1)
    for number in range(1_000_000):
        with blobs.receive() as received:
            try:
                for _ in range(LINES):
                    received.write(line_of(number))
                received.stage()
                received.keep()
            except ServiceUnavailable as error:
                say(error.message)
                return
            say(received.sha256)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
