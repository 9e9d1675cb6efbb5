"""Settings of a repository: the values in its configuration files, and marks that represent them.

A file's settings are a fact `configuration`. A value is one of: a string, a number, a boolean, null
or a list of these; `{"env": NAME, "default": …}` if the environment decides and the code has a
default; or an expression, see routes/expressions.py. `providers` are the classes that the file
lists as providers; `untold` are existing settings whose value is unknown.

While a migration is read, settings are represented by marks within strings, so that names can be
built from them (`config('audit.prefix') . '_id'`). Facts store a string with marks as
`{"asked": text}`. `RepositorySettings` replaces the marks once all files are known.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.languages.php.values import COMPUTED, is_static, iter_elements
from rag_assets.systems.code_memory.languages.tree import Node, get_first_child, iter_descendants
from rag_assets.systems.code_memory.laravel.routes.expressions import Expressions, Json
from rag_assets.systems.code_memory.symbols.model import FileFacts

_PRIVATE: Final = re.compile(
    # Names of columns, and of Laravel's password brokers, are not secret.
    r"pass(?!words$)|secret|(?<!foreign_)(?<!morph_)(?<!pivot_)key|token|credential|salt|dsn|private"
    r"|auth$",
    re.I,
)
_PUBLIC_NAMES: Final = re.compile(r"_(?:TABLE|COLUMN|CONNECTION|DRIVER)$")
"""Matches environment variables that hold no secret, whatever the rest of their name suggests."""

_RELEVANT_KEYS: Final = re.compile(
    r"prefix|middleware|domain|route|ur[il]|path|namespace|guard|controller|slug|host"
    r"|table|column|foreign_key|morph_key|pivot_key|driver|connection|^default$",
    re.I,
)
_MAX_VALUE_CHARACTERS: Final = 200
_MAX_SETTINGS: Final = 500
_MAX_DEPTH: Final = 6
_NONE: Final = object()


def find_settings(source: PhpSource) -> tuple[Node, dict[str, Any]] | None:
    """Return the statement that returns a file's settings, with `values` and `untold`, or None.

    Translation files also return arrays, but they do not read the environment. If a file does not
    read the environment, only values on which routes and tables may depend are included, without
    strings of several words.
    """
    if "return" not in source.text:
        return None
    returned = next((n for n in source.iter_statements() if n.type == "return_statement"), None)
    array = None if returned is None else get_first_child(returned)
    if returned is None or array is None or array.type != "array_creation_expression":
        return None
    leaves = dict(
        islice(_iter_leaves(source, array, reads_env="env(" in source.text), _MAX_SETTINGS)
    )
    known = {name: value for name, value in leaves.items() if value is not _NONE}
    untold = [name for name in leaves if name not in known]
    if providers := _read_providers(source, array):
        known["providers"] = providers
    if not known:
        return None
    return returned, {"values": known, **({"untold": untold} if untold else {})}


def _iter_leaves(source: PhpSource, array: Node, *, reads_env: bool) -> Iterator[tuple[str, Any]]:
    pending: deque[tuple[str, Node, int]] = deque([("", array, 0)])
    while pending:
        prefix, array_at, depth = pending.popleft()
        for key, value in iter_elements(array_at):
            name = source.read_value(key) if key is not None else None
            if not isinstance(name, str):
                continue
            if _PRIVATE.search(name):
                yield prefix + name, _NONE
                continue
            is_array = value.type == "array_creation_expression"
            if is_array and any(inner is not None for inner, _ in iter_elements(value)):
                if depth < _MAX_DEPTH:
                    pending.append((f"{prefix}{name}.", value, depth + 1))
                continue
            is_class = value.type == "class_constant_access_expression" and (
                source.tree.get_node_text(value).endswith("::class")
            )
            of_routes_or_tables = _RELEVANT_KEYS.search(prefix + name) is not None
            may_matter = of_routes_or_tables or value.type == "boolean" or is_class
            leaf = _read_value(source, value) if reads_env or may_matter else _NONE
            is_sentence = isinstance(leaf, str) and " " in leaf.strip()
            yield prefix + name, _NONE if is_sentence and not reads_env else leaf


def _read_value(source: PhpSource, node: Node) -> Any:
    if node.end_byte - node.start_byte > _MAX_VALUE_CHARACTERS:
        return _NONE
    default = _read_env_default(source, node)
    if default is not _NONE:
        return default
    value = source.read_value(node)
    if value is COMPUTED or not is_static(value):
        return _read_expression(source, node)
    if isinstance(value, dict):
        return _NONE
    plain = not isinstance(value, list) or not any(isinstance(item, list | dict) for item in value)
    return value if plain else _NONE


def _read_env_default(source: PhpSource, node: Node) -> Any:
    """Return the default in `env(NAME, default)`; _NONE for any other expression."""
    if node.type != "function_call_expression":
        return _NONE
    chain = source.parse_chain(node)
    if chain is None or chain.calls[0].name.lstrip("\\").lower() != "env":
        return _NONE
    name, default = (source.read_value(chain.calls[0].get_argument(index)) for index in (0, 1))
    if not isinstance(name, str) or isinstance(default, list | dict):
        return _NONE
    if _PRIVATE.search(name) and not _PUBLIC_NAMES.search(name):
        return _NONE
    if default is COMPUTED:
        return _read_expression(source, node)
    return {"env": name, "default": default}


def _read_expression(source: PhpSource, node: Node) -> Json:
    """Return an expression of function calls such as `explode(',', env('HOSTS'))`; else _NONE."""
    if _PRIVATE.search(source.tree.get_node_text(node)):
        return _NONE
    expression = Expressions(source, lambda _: 0).read(node, runs=False)
    is_computed = isinstance(expression, dict) and expression["of"] in {"chain", "join", "array"}
    return expression if is_computed else _NONE


def _read_providers(source: PhpSource, array: Node) -> list[str]:
    """Return the provider classes that a settings file lists, in order.

    The list may be merged with Laravel's own.
    """
    names = dict.fromkeys(
        source.resolve_class_name(source.tree.get_node_text(node.named_children[0]), node)
        for key, value in iter_elements(array)
        if key is None or source.read_value(key) == "providers"
        for node in iter_descendants(value)
        if node.type == "class_constant_access_expression"
    )
    return [name for name in names if not name.startswith("Illuminate\\")]


_FIRST, _LAST = "\ue000", "\ue001"
# Hexadecimal digits do not change when a text is put in lower case or its dots are replaced.
_MARK: Final = re.compile(f"{_FIRST}([0-9a-f]*){_LAST}")
UNKNOWN: Final[Mapping[str, bool]] = {"computed": True}
"""Represents a value computed at run time, in facts."""


def mark_setting(name: str, default: Any = None) -> str:
    """Return the mark that represents a setting inside a string.

    Args:
        name: the dotted name, which starts with the file's name.
        default: the value if the setting is not set: a string, a number, a boolean or null.
    """
    return _FIRST + json.dumps([name, default]).encode().hex() + _LAST


def parse_setting_name(value: Any) -> str | None:
    """Return the name of a setting if a value is exactly its mark; None for any other value."""
    match = _MARK.fullmatch(value) if isinstance(value, str) else None
    setting = None if match is None else _parse_setting_mark(match)
    return None if setting is None else setting[0]


def has_marks(value: Any) -> bool:
    """Return whether a value is a string that contains the mark of a setting."""
    return isinstance(value, str) and _FIRST in value


def _parse_setting_mark(mark: re.Match[str]) -> tuple[str, Any] | None:
    """Return a setting's name and default from its mark; None if the text only resembles one."""
    try:
        name, default = json.loads(bytes.fromhex(mark[1]))
    except ValueError:
        return None
    return (name, default) if isinstance(name, str) else None


class RepositorySettings:
    """The values of a repository's settings, as far as its files state them."""

    def __init__(self, files: Iterable[FileFacts]) -> None:
        self._values: dict[str, Any] = {}
        self._files: set[str] = set()
        self._valueless: set[str] = set()
        for file_facts in sorted(files, key=lambda file: (file.path.count("/"), file.path)):
            for fact in file_facts.facts:
                if fact.kind == "configuration":
                    self._add_file(file_facts.path, fact.values)

    def resolve(self, value: Any) -> Any:
        """Return a fact's value with settings in place of marks; UNKNOWN for unknown settings."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        text = value.get("asked")
        if not isinstance(text, str):
            return {key: self.resolve(item) for key, item in value.items()}
        if (whole := _MARK.fullmatch(text)) is not None:
            return self._read_value(whole)
        values = [self._read_value(mark) for mark in _MARK.finditer(text)]
        if any(isinstance(item, bool) or not isinstance(item, str | int) for item in values):
            return UNKNOWN
        return _MARK.sub(lambda _: str(values.pop(0)), text)

    def _read_value(self, mark: re.Match[str]) -> Any:
        setting = _parse_setting_mark(mark)
        if setting is None:
            return UNKNOWN
        name, default = setting
        if name not in self._values:
            return default if default is not None or self._is_missing(name) else UNKNOWN
        value = self._values[name]
        if isinstance(value, Mapping):
            value = value.get("default", UNKNOWN)
        return default if value is None else value

    def _add_file(self, path: str, settings: Mapping[str, Any]) -> None:
        folder, _, file = path.removesuffix(".php").rpartition("/")
        for key, value in settings["values"].items():
            self._values.setdefault(f"{file}.{key}", value)
        self._valueless.update(f"{file}.{key}" for key in settings.get("untold", ()))
        if folder.rpartition("/")[2] == "config":
            self._files.add(file)

    def _is_missing(self, name: str) -> bool:
        """Return whether a setting does not exist although its settings file is known."""
        parts = name.split(".")
        above = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        is_known = above.isdisjoint(self._valueless) and parts[0] in self._files
        return is_known and not any(value.startswith(f"{name}.") for value in self._values)
