"""The configuration of agents: files in layers, and variables over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rag_assets.common.errors import ConfigurationError, UnknownAgent
from rag_assets.systems.agent_docs.globs import lies_below, patterns_outside
from rag_assets.systems.agent_docs.layers import AgentEntry, Layer, read_layer
from rag_assets.systems.agent_docs.settings import (
    Agent,
    Configuration,
    DocsSettings,
    RagSettings,
    Setting,
)
from rag_assets.systems.agent_docs.values import (
    BASE,
    RAG,
    TOOL_FOR_ALL,
    USER_FILE,
    WrongValue,
    read_flag,
)

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
    layers = [
        _Origin(read_layer(path), path.parent if is_own else base.value, is_users)
        for path, is_own, is_users in _files(around, base.value)
    ]
    allowed = [_allowed(layer.layer, around) for layer in layers if layer.is_users]
    return _configured(layers, around, base, allowed[-1] if allowed else Setting(()))


def load_file(path: Path, around: Surroundings) -> Configuration:
    """Read one file, and variables over it; of the user's own file, only `rag.allow` counts.

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
    users = users_file(around)
    allowed: Setting[tuple[Path, ...]] = Setting(())
    if users is not None:
        allowed = _allowed(read_layer(users), around)
    layers = [_Origin(read_layer(path), base.value, own)]
    return _configured(layers, around, base, allowed, for_tenants=True)


@dataclass(frozen=True, slots=True)
class _Origin:
    """A layer, the folder of its relative paths, and whether its file is the user's own."""

    layer: Layer
    folder: Path
    is_users: bool


def _configured(
    layers: Sequence[_Origin],
    around: Surroundings,
    base: Setting[Path],
    allowed: Setting[tuple[Path, ...]],
    *,
    for_tenants: bool = False,
) -> Configuration:
    rag: dict[str, Setting[Any]] = {}
    agents: dict[str, Agent] = {}
    of_project = {"path"}
    for one in layers:
        own = _with_paths(one.layer, around, one.folder)
        rag |= own
        of_project = of_project - set(own) if one.is_users else of_project | set(own)
        # A variable says where all relative globs begin.
        of_globs = one.folder if base.origin == "default" else base.value
        agents |= {entry.id: _agent(entry, of_globs, one) for entry in one.layer.agents}
    variables = dict(_variables(around, base.value))
    settings = RagSettings(**(rag | variables | {"allow": allowed}))
    path = replace(settings.path, value=base.value / settings.path.value)
    settings, warnings = _within_limits(replace(settings, path=path))
    paths = {"model"} if for_tenants else {"path", "model"}
    beyond = [
        _require_inside(name, getattr(settings, name), settings, base.value)
        for name in sorted(paths & (of_project - set(variables)))
    ]
    confined = [one for one in agents.values() if for_tenants or not one.is_users]
    refused, of_sources = _leading_out(confined, settings.allow, around.home)
    agents = {id_: one for id_, one in agents.items() if id_ not in refused}
    of_layers = (warning for one in layers for warning in one.layer.warnings)
    return Configuration(
        settings,
        agents,
        _flag(around),
        base,
        tuple(one.layer.path for one in layers),
        (*of_layers, *warnings, *filter(None, beyond), *of_sources),
        refused,
        "model" in of_project and not lies_below(settings.model.value or base.value, allowed.value),
    )


def _allowed(layer: Layer, around: Surroundings) -> Setting[tuple[Path, ...]]:
    """Return the paths beyond their bases that the user's file has projects' files name."""
    written: Setting[tuple[str, ...]] = layer.rag.get("allow", Setting(()))
    paths = tuple(around.path(one, layer.path.parent) for one in written.value)
    return Setting(paths, written.origin)


def _require_inside(
    name: str, setting: Setting[Path | None], rag: RagSettings, base: Path
) -> str | None:
    """Return a warning where the user allows a path beyond the base.

    Raises:
        ConfigurationError: nothing allows it.
    """
    if setting.value is None:
        return None
    is_database = name == "path" and rag.store.value == "sqlite"
    places = [setting.value, rag.database] if is_database else [setting.value]
    outside = next((one for one in places if not lies_below(one, [base])), None)
    if outside is None:
        return None
    if lies_below(outside, rag.allow.value):
        return f"{setting.origin}: {name} lies beyond {base}, as {rag.allow.origin} allows"
    raise _outside(setting.origin, f"rag.{name} leads to {outside.resolve()}", base)


def _leading_out(
    agents: Sequence[Agent], allow: Setting[tuple[Path, ...]], home: Path
) -> tuple[dict[str, ConfigurationError], list[str]]:
    """Return the errors of agents whose sources lead out of their base, and warnings.

    A warning names a source beyond the base that the user's own file allows.
    """
    refused: dict[str, ConfigurationError] = {}
    warnings: list[str] = []
    for agent in agents:
        origin = agent.docs.sources.origin
        outside = patterns_outside(agent.docs.sources.value, agent.base, allow.value, home)
        wrong = next((one for one, is_allowed in outside.items() if not is_allowed), None)
        if wrong is not None:
            what = f"the source {wrong!r} of agent {agent.id!r} leads out of it"
            refused[agent.id] = _outside(origin, what, agent.base)
            continue
        warnings += [
            f"{origin}: the source {one!r} lies beyond {agent.base}, as {allow.origin} allows"
            for one in outside
        ]
    return refused, warnings


def _outside(origin: str, what: str, base: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{origin}: {what}; a project's file may name only what lies below {base}",
        hint="move it there, or allow it in your own file, as in"
        " `rag: {allow: [~/notes]}` in ~/.config/swebash/agents.yaml",
    )


def _base(around: Surroundings) -> Setting[Path]:
    given = around.variable(BASE)
    if given is None:
        return Setting(around.folder)
    path = around.path(given, around.folder)
    if not path.is_dir():
        raise _wrong_variable(BASE, "must be a folder that is there")
    return Setting(path, f"variable {BASE}")


def _files(around: Surroundings, base: Path) -> Iterator[tuple[Path, bool, bool]]:
    """Yield the files that exist: whether paths begin in their folder, whether they are the user's.

    Raises:
        ConfigurationError: the variable names no file, or the project's file is a link out of it.
    """
    project = base / _PROJECT
    own = users_file(around)
    if project.is_file():
        is_users = project in {around.home / one for one in _USER}
        if not is_users and not lies_below(project, [base]):
            raise _outside(f"{project}:1", f"it is a link to {project.resolve()}", base)
        yield project, False, is_users
    if (given := around.variable(USER_FILE)) is not None:
        path = around.path(given, around.folder)
        if not path.is_file():
            raise _wrong_variable(USER_FILE, "must be a file that is there")
        yield path, True, True
    elif own is not None and own != project:
        yield own, True, True


def users_file(around: Surroundings) -> Path | None:
    """Return the user's own file in the home folder; None without one."""
    return next((path for path in (around.home / one for one in _USER) if path.is_file()), None)


def _with_paths(layer: Layer, around: Surroundings, folder: Path) -> dict[str, Setting[Any]]:
    return {
        name: replace(setting, value=around.path(setting.value, folder))
        if name in {"path", "model"}
        else setting
        for name, setting in layer.rag.items()
        if name != "allow"
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


def _agent(entry: AgentEntry, base: Path, origin: _Origin) -> Agent:
    docs = DocsSettings(**entry.docs)
    texts = entry.name, entry.description, entry.prompt
    return Agent(entry.id, base, docs, entry.origin, *texts, is_users=origin.is_users)


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
        ConfigurationError: its sources lead out of its project.
    """
    for name in (id_, id_.removeprefix("@")):
        if name in configuration.refused:
            raise configuration.refused[name]
    found = configuration.agents.get(id_) or configuration.agents.get(id_.removeprefix("@"))
    if found is not None:
        return found
    known = ", ".join(f"@{one}" for one in sorted(configuration.agents)) or "none"
    raise UnknownAgent(f"there is no agent {id_!r}", hint=f"agents are: {known}")
