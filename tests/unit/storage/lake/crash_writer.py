"""Writers for test_crash: child processes that append and compact until they are killed.

The parent has imported Polars and Delta Lake but started none of their threads, so forking a child
takes milliseconds. A line on stdin starts a child, which prints its pid and then the number of each
acknowledged batch.
"""

import os
import random
import sys

import numpy as np

from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.storage.lake.model import ParsedRow
from rag_assets.storage.lake.store import Lake

EMBEDDER = "local/test@64"
ROWS = 3


def text_of(batch: int, row: int) -> str:
    return random.Random(f"{batch}-{row}").randbytes(8_000).hex()


def batch_of(batch: int) -> list[ParsedRow]:
    texts = [text_of(batch, row) for row in range(ROWS)]
    return [
        ParsedRow(f"{batch}-{row}", sha256_hex(text), ParsedText(text, ()))
        for row, text in enumerate(texts)
    ]


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def write_for_ever(url: str, batch: int) -> None:
    lake = Lake(url).tenant("acme", 1)
    say(os.getpid())
    while True:
        lake.append_parsed(batch_of(batch))
        vectors = np.full((ROWS, 64), batch + 1, np.float32)
        lake.append_vectors(EMBEDDER, [f"{batch}-{row}" for row in range(ROWS)], vectors)
        say(batch)
        if batch % 3 == 2:
            lake.compact()
        batch += 1


def main() -> None:
    for line in sys.stdin:
        if os.fork() == 0:
            write_for_ever(sys.argv[1], int(line))
        os.wait()
        say("dead")


if __name__ == "__main__":
    main()
