"""Private files: a failed replacement leaves the former content, and nothing else."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rag_assets.common.private_files import write_atomically


@contextmanager
def limited_file_size(size_bytes: int) -> Iterator[None]:
    """Let every write beyond this size fail within the block, as on a full disk."""
    former_limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    former_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, former_limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former_limits)
        signal.signal(signal.SIGXFSZ, former_handler)


def test_write_atomically_failed_write_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "tenants.json"
    write_atomically(path, "former")
    with limited_file_size(1_000), pytest.raises(OSError, match="File too large"):
        write_atomically(path, "x" * 100_000)
    assert list(path.parent.iterdir()) == [path]
    assert path.read_text() == "former"
