"""The configuration of agents: files agents.yaml in layers, and variables that override them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rag_assets.common.errors import ConfigurationError, UnknownAgent
from rag_assets.systems.agent_docs.globs import lies_below, patterns_outside
from rag_assets.systems.agent_docs.settings import (
    BASE,
    DOCS,
    RAG,
    TOOL_FOR_ALL,
    USER_FILE,
    Agent,
    Configuration,
    DocsSettings,
    Field,
    RagSettings,
    Setting,
    WrongValue,
    read_flag,
)

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
