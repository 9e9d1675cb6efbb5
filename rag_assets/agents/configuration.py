"""The configuration of agents: files in layers, and variables over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rag_assets.agents.layers import AgentEntry, Layer, read_layer
from rag_assets.agents.settings import (
    Agent,
    Configuration,
    DocsSettings,
    RagSettings,
    Setting,
)
from rag_assets.agents.values import BASE, RAG, TOOL_FOR_ALL, USER_FILE, WrongValue, read_flag
from rag_assets.common.errors import ConfigurationError, UnknownAgent

_PROJECT: Final = Path(".swebash/agents.yaml")
_USER: Final = (Path(".config/swebash/agents.yaml"), Path(".swebash/agents.yaml"))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the configuration is read from.

    Attributes:
        variables: of the environment.
        folder: the working directory.
        home: the user's folder.
    """

    variables: Mapping[str, str]
    folder: Path
    home: Path

    @classmethod
    def of_process(cls) -> Surroundings:
        """Those of this process."""
        import os

        return cls(dict(os.environ), Path.cwd(), Path.home())

    def variable(self, name: str) -> str | None:
        """A variable's value; None if it is not set, or empty."""
        return self.variables.get(name) or None

    def path(self, written: str, base: Path) -> Path:
        """A path as it is written, from a base."""
        if written == "~" or written.startswith("~/"):
            return self.home / written[2:]
        return base / written


def load_configuration(around: Surroundings) -> Configuration:
    """Read all layers and variables.

    Args:
        around: where to look.

    Raises:
        ConfigurationError: a file or a variable is wrong.
    """
    base = _base(around)
    layers = [(read_layer(path), own) for path, own in _files(around, base.value)]
    return _configured(layers, around, base)


def load_file(path: Path, around: Surroundings) -> Configuration:
    """Read one file, and variables over it; no other file counts.

    Args:
        path: of the file.
        around: variables, and the home folder; relative globs begin in the folder of the file, or
            above its `.swebash` where it is a project's.

    Raises:
        ConfigurationError: the file or a variable is wrong.
    """
    own = path in {around.home / one for one in _USER}
    is_projects = not own and path.parts[-2:] == _PROJECT.parts
    folder = path.parent.parent if is_projects else path.parent
    base = _base(replace(around, folder=folder))
    return _configured([(read_layer(path), False)], around, base)


def _configured(
    layers: Sequence[tuple[Layer, bool]], around: Surroundings, base: Setting[Path]
) -> Configuration:
    rag: dict[str, Setting[Any]] = {}
    agents: dict[str, Agent] = {}
    for layer, is_users in layers:
        folder = layer.path.parent if is_users else base.value
        rag |= _with_paths(layer, around, folder)
        # A variable says where all relative globs begin.
        of_globs = folder if base.origin == "default" else base.value
        agents |= {entry.id: _agent(entry, of_globs) for entry in layer.agents}
    rag |= dict(_variables(around, base.value))
    settings = RagSettings(**rag)
    path = replace(settings.path, value=base.value / settings.path.value)
    settings, warnings = _within_limits(replace(settings, path=path))
    return Configuration(
        settings,
        agents,
        _flag(around),
        base,
        tuple(layer.path for layer, _ in layers),
        (*(warning for layer, _ in layers for warning in layer.warnings), *warnings),
    )


def _base(around: Surroundings) -> Setting[Path]:
    given = around.variable(BASE)
    if given is None:
        return Setting(around.folder)
    path = around.path(given, around.folder)
    if not path.is_dir():
        raise _wrong_variable(BASE, "must be a folder that is there")
    return Setting(path, f"variable {BASE}")


def _files(around: Surroundings, base: Path) -> Iterator[tuple[Path, bool]]:
    """The files that are there, and whether each is the user's."""
    project = base / _PROJECT
    if project.is_file():
        yield project, False
    if (given := around.variable(USER_FILE)) is not None:
        path = around.path(given, around.folder)
        if not path.is_file():
            raise _wrong_variable(USER_FILE, "must be a file that is there")
        yield path, True
        return
    own = next((path for path in (around.home / one for one in _USER) if path.is_file()), None)
    if own is not None and own != project:
        yield own, True


def _with_paths(layer: Layer, around: Surroundings, folder: Path) -> dict[str, Setting[Any]]:
    return {
        name: replace(setting, value=around.path(setting.value, folder))
        if name in {"path", "model"}
        else setting
        for name, setting in layer.rag.items()
    }


def _variables(around: Surroundings, base: Path) -> Iterator[tuple[str, Setting[Any]]]:
    for name, field in RAG.items():
        given = around.variable(field.variable) if field.variable else None
        if given is None:
            continue
        try:
            value = field.read(given)
        except WrongValue as error:
            raise _wrong_variable(field.variable, str(error)) from None
        value = around.path(value, base) if name == "path" else value
        yield name, Setting(value, f"variable {field.variable}")


def _flag(around: Surroundings) -> Setting[bool]:
    given = around.variable(TOOL_FOR_ALL)
    if given is None:
        return Setting(value=False)
    try:
        return Setting(read_flag(given), f"variable {TOOL_FOR_ALL}")
    except WrongValue as error:
        raise _wrong_variable(TOOL_FOR_ALL, str(error)) from None


def _wrong_variable(name: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"the variable {name} {what}", hint="set it, or unset it")


def _agent(entry: AgentEntry, base: Path) -> Agent:
    docs = DocsSettings(**entry.docs)
    return Agent(entry.id, base, docs, entry.origin, entry.name, entry.description, entry.prompt)


def _within_limits(rag: RagSettings) -> tuple[RagSettings, list[str]]:
    most = rag.chunk_size.value // 2
    if rag.chunk_overlap.value <= most:
        return rag, []
    given = rag.chunk_overlap
    warning = (
        f"{given.origin}: chunk_overlap {given.value} is over half of chunk_size"
        f" {rag.chunk_size.value}; {most} is used"
    )
    return replace(rag, chunk_overlap=replace(given, value=most)), [warning]


def agent_of(configuration: Configuration, id_: str) -> Agent:
    """The agent of an id, with or without `@` before it.

    Raises:
        UnknownAgent: there is none.
    """
    found = configuration.agents.get(id_) or configuration.agents.get(id_.removeprefix("@"))
    if found is not None:
        return found
    known = ", ".join(f"@{one}" for one in sorted(configuration.agents)) or "none"
    raise UnknownAgent(f"there is no agent {id_!r}", hint=f"agents are: {known}")
