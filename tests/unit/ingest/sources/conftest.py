import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rag_assets.ingest.sources.files import FilesConfig, FilesSource

NOBODY = 65534


def source(root: Path, **options: Any) -> FilesSource:
    return FilesSource(FilesConfig(name="docs", root=root, **{"include": ("**",)} | options))


def paths(root: Path, **options: Any) -> list[str]:
    return [document.path for document in source(root, **options).list()]


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


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
