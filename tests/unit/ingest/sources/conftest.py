from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that any user may enter, unlike pytest's own; in memory if possible."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def unprivileged() -> Callable[[], AbstractContextManager[None]]:
    """Return a context manager that drops root's privileges."""

    @contextmanager
    def drop() -> Iterator[None]:
        user = os.geteuid()
        if user == 0:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(user)

    return drop
