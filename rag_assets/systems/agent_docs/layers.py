"""One file agents.yaml: what its blocks `rag` and `agents` say, with the line of each value."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.settings import Setting
from rag_assets.systems.agent_docs.values import DOCS, RAG, Field, WrongValue

MAX_BYTES: Final = 4 * 1024 * 1024
MAX_ID: Final = 200


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """An agent as one file declares it.

    Attributes:
        id: its id.
        docs: settings of its block `docs` that are given.
        origin: the file and line.
        name, description, prompt: of the agent; they belong to other programs.
    """

    id: str
    docs: Mapping[str, Setting[Any]]
    origin: str
    name: str = ""
    description: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one file says.

    Attributes:
        path: of the file.
        rag: settings of the block `rag` that are given.
        agents: in the order of the file.
        warnings: of what is unknown within the two blocks.
    """

    path: Path
    rag: Mapping[str, Setting[Any]]
    agents: tuple[AgentEntry, ...]
    warnings: tuple[str, ...]


def read_layer(path: Path) -> Layer:
    """Read a file.

    Raises:
        ConfigurationError: it cannot be read, is no YAML, or has a wrong value of ours; with file,
            line and column.
    """
    reader = _Reader(path)
    document = reader.loaded()
    if document is None:
        return Layer(path, {}, (), ())
    if not isinstance(document, Mapping):
        raise reader.wrong(1, 1, "it must be a mapping with the keys `rag` and `agents`")
    rag = reader.block(document, "rag", RAG, "rag")
    return Layer(path, rag, tuple(reader.agents(document)), tuple(reader.warnings))


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.warnings: list[str] = []

    def loaded(self) -> Any:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            with self._path.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise ConfigurationError(
                f"{self._path} cannot be read: {error.strerror}", hint="check its permissions"
            ) from None
        if len(data) > MAX_BYTES:
            raise self.wrong(1, 1, f"it is larger than {MAX_BYTES:,} bytes")
        try:
            return YAML(typ="rt", pure=True).load(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise self.wrong(1, 1, "it is not UTF-8 text") from None
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
            # The problem's own words may quote a value.
            why = "a key stands there twice" if "duplicate" in str(error.problem) else error.problem
            raise self.wrong(line, column, f"it is not YAML: {why or 'unreadable'}") from None
        except (YAMLError, RecursionError):
            raise self.wrong(1, 1, "it is not YAML") from None

    def wrong(self, line: int, column: int, what: str) -> ConfigurationError:
        return ConfigurationError(f"{self._path}:{line}:{column}: {what}", hint="correct the file")

    def agents(self, document: Any) -> list[AgentEntry]:
        listed: Any = document.get("agents")
        if listed is None:
            return []
        if not isinstance(listed, list):
            raise self._wrong_value(document, "agents", "must be a list of agents")
        found: dict[str, AgentEntry] = {}
        places: Any = document["agents"].lc
        for at, entry in enumerate(listed):
            line, column = (place + 1 for place in places.item(at))
            if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
                raise self.wrong(line, column, "an agent must be a mapping with an `id` of letters")
            id_ = str(entry["id"])
            if not id_.strip() or len(id_) > MAX_ID or not id_.isprintable():
                raise self._wrong_value(
                    entry, "id", f"must have 1 to {MAX_ID} printable characters"
                )
            if id_ in found:
                raise self._wrong_value(entry, "id", f"{id_!r} is declared twice")
            docs = self.block(entry, "docs", DOCS, f"agent {id_}: docs")
            texts = [_text_of(entry, *names) for names in _TEXTS]
            found[id_] = AgentEntry(id_, docs, f"{self._path}:{line}", *texts)
        return list(found.values())

    def block(
        self, holder: Any, name: str, fields: Mapping[str, Field], shown: str
    ) -> dict[str, Setting[Any]]:
        given = holder.get(name)
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            raise self._wrong_value(holder, name, "must be a mapping")
        found: dict[str, Setting[Any]] = {}
        for key, value in given.items():
            field = fields.get(key) if isinstance(key, str) else None
            if field is None:
                self._warn(given, key, shown, fields)
            elif value is not None:
                found[str(key)] = self._setting(given, key, field)
        return found

    def _setting(self, given: Any, key: str, field: Field) -> Setting[Any]:
        try:
            value = field.read(given[key])
        except WrongValue as error:
            raise self._wrong_value(given, key, str(error)) from None
        return Setting(value, f"{self._path}:{_holder_of(given, key).lc.key(key)[0] + 1}")

    def _wrong_value(self, holder: Any, key: str, what: str) -> ConfigurationError:
        line, column = _holder_of(holder, key).lc.value(key)
        return self.wrong(line + 1, column + 1, f"{key} {what}")

    def _warn(self, given: Any, key: Any, shown: str, fields: Mapping[str, Field]) -> None:
        near = difflib.get_close_matches(str(key), fields, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        line = _holder_of(given, key).lc.key(key)[0] + 1
        self.warnings.append(f"{self._path}:{line}: {shown} has no setting {key}{meant}")


def _holder_of(given: Any, key: Any) -> Any:
    """The mapping that has a key itself: this one, or one that is merged into it by `<<`."""
    if key in (given.lc.data or {}):
        return given
    return next((_holder_of(one, key) for one in given.merge if key in one), given)


_TEXTS: Final = (("name",), ("description",), ("systemPrompt", "system_prompt", "prompt"))


def _text_of(entry: Any, *names: str) -> str:
    return next((str(entry[name]) for name in names if isinstance(entry.get(name), str)), "")
