"""A fingerprint of imported code: whether the files on the disk are still those that were read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

_MISSING = (0, 0)
_COMPILED = "__pycache__"


class Fingerprint:
    """The files and folders of the code of this process, as they are now.

    It covers each imported module that is not installed, the names in the folders these lie in (a
    new module counts too) and in the folder of installed packages, and given files.

    Args:
        files: of configuration and locked versions.
    """

    def __init__(self, files: Iterable[Path] = ()) -> None:
        modules = {Path(file) for file in _own_modules()}
        folders = {*(module.parent for module in modules), *_installed()}
        self._files = {str(path): _state(str(path)) for path in {*modules, *files}}
        self._folders = {str(path): _names(str(path)) for path in folders}

    def is_current(self) -> bool:
        """Whether nothing changed since; takes about two milliseconds."""
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


def _installed() -> Iterable[Path]:
    return {Path(path) for path in sys.path if path.endswith("-packages")}


def _names(folder: str) -> frozenset[str]:
    """What lies in a folder; what Python compiles there is no change."""
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
