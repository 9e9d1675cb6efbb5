"""A spool of vectors: it keeps a provider's answers until the lake has stored them.

Before a request is sent, disk space for its answer is reserved. So a full disk stops requests
instead of losing vectors that were paid for. If the lake cannot be written, or the process is
killed, the vectors stay in the spool. The next writer stores them in the lake before it sends any
request.

Each request has a file, `<number>.vectors`: a line of JSON with its texts' hashes, then packed
numbers.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson

from rag_assets.common.disk_space import build_disk_full_error
from rag_assets.common.errors import ServiceUnavailable

_ENDING: Final = ".vectors"
_HEAD_BYTES: Final = 256
_HASH_BYTES: Final = 72
"""Bytes that a text_sha256 takes in the first line, with quotes and comma."""
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class VectorSpool:
    """Keeps the vectors of one embedder until the lake has them."""

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._folder = folder
        self._dimensions = dimensions
        self._numbers = count(max(self._list_kept_numbers(), default=0) + 1)

    def reserve(self, texts: int) -> SpooledAnswer:
        """Reserve disk space for the vectors of one request.

        Raises:
            ServiceUnavailable: the disk is full, or the folder cannot be written.
        """
        size = _HEAD_BYTES + texts * (_HASH_BYTES + 4 * self._dimensions)
        path = self._folder / f"{next(self._numbers)}{_ENDING}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            path.unlink(missing_ok=True)
            if error.errno in _FULL:
                raise build_disk_full_error(
                    self._folder, "no text is sent to the embedder"
                ) from error
            raise ServiceUnavailable(
                f"the lake at {self._folder.parent} cannot be written: {error.strerror}",
                hint="check RAG_ASSETS_LAKE_URL, its permissions and its disk",
            ) from error
        return SpooledAnswer(path)

    def kept(self) -> Iterator[tuple[SpooledAnswer, list[str], npt.NDArray[np.float32]]]:
        """Yield the answers that were spooled completely, each with its text hashes and vectors.

        An earlier process left these answers: it ended before it wrote the vectors to the lake.
        """
        for number in self._list_kept_numbers():
            answer = SpooledAnswer(self._folder / f"{number}{_ENDING}")
            content = answer.path.read_bytes()
            if (read := _parse_answer(content, self._dimensions)) is None:
                answer.release()  # reserved but never filled, or killed while it was written
            else:
                yield answer, *read

    def _list_kept_numbers(self) -> list[int]:
        names = (file.stem for file in self._folder.glob(f"*{_ENDING}"))
        return sorted(int(name) for name in names if name.isdecimal())


class SpooledAnswer:
    """A file of the spool: the vectors of one request, or the space reserved for them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, keys: Sequence[str], vectors: npt.NDArray[np.float32]) -> None:
        """Write vectors of shape (len(keys), dimensions) to the file."""
        packed = np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        head = {"texts": list(keys), "digest": blake2b(packed, digest_size=16).hexdigest()}
        with self.path.open("r+b") as file:
            file.write(orjson.dumps(head) + b"\n" + packed)
            file.truncate()

    def release(self) -> None:
        """Delete the file: the lake has the vectors, or the request returned none."""
        self.path.unlink(missing_ok=True)


def _parse_answer(
    content: bytes, dimensions: int
) -> tuple[list[str], npt.NDArray[np.float32]] | None:
    """Return the hashes and the vectors in a spool file; None if the file is incomplete."""
    head, _, packed = content.partition(b"\n")
    try:
        fields = orjson.loads(head)
    except orjson.JSONDecodeError:
        return None
    if blake2b(packed, digest_size=16).hexdigest() != fields["digest"]:
        return None
    vectors = np.frombuffer(packed, "<f4")
    if vectors.size != len(fields["texts"]) * dimensions:
        return None
    return fields["texts"], vectors.reshape(-1, dimensions)
