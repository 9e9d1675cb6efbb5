"""Settings and the driver in statements on tables: known only after all files are read.

While a file is read, such a value is represented by a mark within a text, so that names can be
built from it (`config('audit.prefix') . '_id'`). Facts store a text with marks as `{"asked":
text}`. The marks are replaced once the settings of the repository are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rag_assets.systems.code_memory.symbols.model import FileFacts

_FIRST, _LAST = "\ue000", "\ue001"
# Hexadecimal digits do not change when a text is put in lower case or its dots are replaced.
_MARK: Final = re.compile(f"{_FIRST}([0-9a-f]*){_LAST}")
_DRIVER: Final = ":driver"
_CONNECTION: Final = "database.default"
UNKNOWN: Final[Mapping[str, bool]] = {"computed": True}
"""Represents a value computed at run time, in facts."""


def asked(name: str, default: Any = None) -> str:
    """Return the mark that represents a setting.

    Args:
        name: the dotted name, which starts with the file's name.
        default: the value if the setting is not set: a text, a number, a boolean or null.
    """
    return _FIRST + json.dumps([name, default]).encode().hex() + _LAST


DRIVER: Final = asked(_DRIVER)
"""Mark that represents the database driver: `mysql`, `sqlite`."""


def name_asked(value: Any) -> str | None:
    """Return the name of the setting that a value represents; None if it is anything else."""
    whole = _MARK.fullmatch(value) if isinstance(value, str) else None
    told = None if whole is None else _told(whole)
    return None if told is None else told[0]


def has_marks(value: Any) -> bool:
    """Return whether a text contains a mark."""
    return isinstance(value, str) and _FIRST in value


def _told(mark: re.Match[str]) -> tuple[str, Any] | None:
    """Return name and default in a mark; None if the mark comes from the file's own text."""
    try:
        name, default = json.loads(bytes.fromhex(mark[1]))
    except ValueError:
        return None
    return (name, default) if isinstance(name, str) else None


class Settings:
    """The settings of a repository, as far as its files show them.

    Args:
        files: the files of the repository.
        driver: the database driver; None for the driver of the default connection.
    """

    def __init__(self, files: Iterable[FileFacts], driver: str | None = None) -> None:
        self._values: dict[str, Any] = {}
        self._files: set[str] = set()
        self._untold: set[str] = set()
        for one in sorted(files, key=lambda file: (file.path.count("/"), file.path)):
            for fact in one.facts:
                if fact.kind == "configuration":
                    self._add(one.path, fact.values)
        if driver is not None:
            self._values[_CONNECTION] = driver
            self._values[_DRIVER] = driver
        else:
            self._values[_DRIVER] = self._default_driver()

    def resolved(self, value: Any) -> Any:
        """Return a fact's value with settings in place of marks; UNKNOWN if a setting is unknown.

        Args:
            value: the value as JSON.
        """
        if isinstance(value, list):
            return [self.resolved(one) for one in value]
        if not isinstance(value, Mapping):
            return value
        text = value.get("asked")
        if isinstance(text, str):
            return self._text(text)
        return {key: self.resolved(one) for key, one in value.items()}

    def _text(self, text: str) -> Any:
        whole = _MARK.fullmatch(text)
        if whole is not None:
            return self._value(whole)
        values = [self._value(mark) for mark in _MARK.finditer(text)]
        if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in values):
            return UNKNOWN
        following = iter(values)
        return _MARK.sub(lambda _: str(next(following)), text)

    def _value(self, mark: re.Match[str]) -> Any:
        told = _told(mark)
        if told is None:
            return UNKNOWN
        name, default = told
        if name not in self._values:
            return default if default is not None or self._is_left_out(name) else UNKNOWN
        value = self._values[name]
        if isinstance(value, Mapping):
            value = value.get("default", UNKNOWN)
        return default if value is None else value

    def _add(self, path: str, told: Mapping[str, Any]) -> None:
        folder, _, file = path.removesuffix(".php").rpartition("/")
        for key, value in told["values"].items():
            self._values.setdefault(f"{file}.{key}", value)
        self._untold.update(f"{file}.{key}" for key in told.get("untold", ()))
        if folder.rpartition("/")[2] == "config":
            self._files.add(file)

    def _is_left_out(self, name: str) -> bool:
        """Return whether a known settings file does not have a setting of this name."""
        parts = name.split(".")
        above = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        known = above.isdisjoint(self._untold) and parts[0] in self._files
        return known and not any(one.startswith(f"{name}.") for one in self._values)

    def _default_driver(self) -> Any:
        """Return the driver of the default connection, which often is the connection's name."""
        found = _MARK.fullmatch(asked(_CONNECTION))
        name = UNKNOWN if found is None else self._value(found)
        if not isinstance(name, str):
            return UNKNOWN
        return self._values.get(f"database.connections.{name}.driver", name)
