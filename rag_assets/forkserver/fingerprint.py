"""A fingerprint of imported code, which shows whether the files on disk still match the code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

_MISSING = (0, 0)
_COMPILED = "__pycache__"


class Fingerprint:
    """The state of this process's code files and folders when the object is created.

    It covers the given files, each imported module that does not belong to an installed package,
    and the file names in the folders of these modules and of installed packages. So a new module
    counts as a change.

    Args:
        files: further files, such as those with configuration and locked versions.
    """

    def __init__(self, files: Iterable[Path] = ()) -> None:
        modules = {Path(file) for file in _own_modules()}
        folders = {*(module.parent for module in modules), *_find_package_folders()}
        self._files = {str(path): _state(str(path)) for path in {*modules, *files}}
        self._folders = {str(path): _names(str(path)) for path in folders}

    def is_current(self) -> bool:
        """Return whether the code is unchanged; takes about two milliseconds."""
        return all(_state(path) == state for path, state in self._files.items()) and all(
            _names(path) == names for path, names in self._folders.items()
        )


def _own_modules() -> Iterable[str]:
    installed = tuple({os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)})
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not os.path.isabs(file):  # noqa: PTH117
            continue
        if not os.path.realpath(file).startswith(installed):
            yield file


def _find_package_folders() -> Iterable[Path]:
    return {Path(path) for path in sys.path if path.endswith("-packages")}


def _names(folder: str) -> frozenset[str]:
    """Return the names in a folder, without Python's compiled files."""
    try:
        return frozenset(os.listdir(folder)) - {_COMPILED}  # noqa: PTH208
    except OSError:
        return frozenset()


def _state(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116  (hundreds of them, before each command)
    except OSError:
        return _MISSING
    return found.st_mtime_ns, found.st_size
