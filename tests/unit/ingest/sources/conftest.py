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
    """A folder that any user may enter, unlike pytest's own; in memory where there is such."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def unprivileged() -> Callable[[], AbstractContextManager[None]]:
    """Be bound by permissions for a while, which root is not."""

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
