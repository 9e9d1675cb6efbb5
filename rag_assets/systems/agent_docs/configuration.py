"""The configuration of agents: agents.yaml files in layers, overridden by environment variables."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.errors import UnknownAgent
from rag_assets.systems.agent_docs.globs import find_outside_patterns, is_inside
from rag_assets.systems.agent_docs.settings import (
    BASE,
    DEFAULT_ORIGIN,
    DOCS_PARSERS,
    RAG_PARSERS,
    RAG_VARIABLES,
    TOOL_FOR_ALL,
    USER_FILE,
    Agent,
    Configuration,
    DocsSettings,
    InvalidValue,
    Parser,
    RagSettings,
    Setting,
    parse_flag,
)

MAX_BYTES: Final = 4 * 1024 * 1024
"""Maximum bytes of an agents.yaml; a larger file is an error."""
MAX_ID_LENGTH: Final = 200
"""Maximum characters of an agent's id; a longer id is an error."""
_PROJECT_FILE: Final = Path(".swebash/agents.yaml")
_USER_FILES: Final = (Path(".config/swebash/agents.yaml"), Path(".swebash/agents.yaml"))
_PROMPT_KEYS: Final = ("systemPrompt", "system_prompt", "prompt")


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment variables, working directory and home folder of a process."""

    variables: Mapping[str, str]
    folder: Path
    home: Path

    @classmethod
    def from_process(cls) -> Environment:
        """Return the environment of this process."""
        return cls(dict(os.environ), Path.cwd(), Path.home())

    def get_variable(self, name: str) -> str | None:
        """Return the value of a variable; None if it is unset or empty."""
        return self.variables.get(name) or None

    def resolve(self, path: str, base: Path) -> Path:
        """Return an absolute path; `~` is the home folder, other relative paths start at `base`."""
        if path == "~" or path.startswith("~/"):
            return self.home / path[2:]
        return base / path

    def is_user_file(self, path: Path) -> bool:
        """Return whether a path is one of the default paths of the user's own file."""
        return path in {self.home / relative for relative in _USER_FILES}

    def find_user_file(self) -> Path | None:
        """Return the user's own file in the home folder; None if it does not exist."""
        paths = (self.home / relative for relative in _USER_FILES)
        return next((path for path in paths if path.is_file()), None)


@dataclass(frozen=True, slots=True)
class _Layer:
    """The settings in one agents.yaml, with absolute paths.

    Attributes:
        is_user_file: whether it is the user's own file instead of a project's file.
        rag: the settings that the file contains in its block `rag`, except `allow`.
        allow: paths outside a project's base that the project's file may name.
    """

    path: Path
    is_user_file: bool
    rag: Mapping[str, Setting[Any]]
    agents: Sequence[Agent]
    allow: Setting[tuple[Path, ...]]
    warnings: Sequence[str]


def load_configuration(environment: Environment) -> Configuration:
    """Load the configuration from all files and environment variables.

    Raises:
        ConfigurationError: a file or a variable is invalid.
    """
    base = _find_base(environment)
    layers = [
        _read_layer(path, folder, base, environment, is_user_file=is_user_file)
        for path, folder, is_user_file in _find_files(environment, base.value)
    ]
    allow: Setting[tuple[Path, ...]] = Setting(())
    for layer in layers:
        allow = layer.allow if layer.is_user_file else allow
    return _merge_layers(layers, environment, base, allow)


def load_file(path: Path, environment: Environment) -> Configuration:
    """Read the settings in one file and in environment variables.

    `rag.allow` is always read from the user's own file. Relative patterns start in the folder of
    the file; in a project's file, in the folder that contains `.swebash`.

    Raises:
        ConfigurationError: the file or a variable is invalid.
    """
    is_user_file = environment.is_user_file(path)
    is_projects = not is_user_file and path.parts[-2:] == _PROJECT_FILE.parts
    folder = path.parent.parent if is_projects else path.parent
    base = _find_base(replace(environment, folder=folder))
    user_file = environment.find_user_file()
    allow: Setting[tuple[Path, ...]] = Setting(())
    if user_file is not None:
        allow = _read_layer(user_file, folder, base, environment, is_user_file=True).allow
    layer = _read_layer(path, base.value, base, environment, is_user_file=is_user_file)
    return _merge_layers([layer], environment, base, allow, is_for_tenants=True)


def find_agent(configuration: Configuration, id_: str) -> Agent:
    """Return the agent with an id, which may start with `@`.

    Raises:
        UnknownAgent: no file declares the agent.
        ConfigurationError: the sources of the agent are outside its project.
    """
    names = (id_, id_.removeprefix("@"))
    for name in names:
        if name in configuration.refused:
            raise configuration.refused[name]
    for name in names:
        if name in configuration.agents:
            return configuration.agents[name]
    known = ", ".join(f"@{name}" for name in sorted(configuration.agents)) or "none"
    raise UnknownAgent(f"no agent is declared with the id {id_!r}", hint=f"known agents: {known}")


def _find_files(environment: Environment, base: Path) -> Iterator[tuple[Path, Path, bool]]:
    """Yield the path of each agents.yaml, a folder, and whether it is the user's own file.

    Relative paths in the file start at the folder.

    Raises:
        ConfigurationError: the environment variable names a missing file, or the project's file is
            a link that leads out of the base.
    """
    project_file, user_file = base / _PROJECT_FILE, environment.find_user_file()
    if project_file.is_file():
        is_user_file = environment.is_user_file(project_file)
        if not is_user_file and not is_inside(project_file, [base]):
            target = project_file.resolve()
            raise _outside_base_error(f"{project_file}:1", f"this file is a link to {target}", base)
        yield project_file, base, is_user_file
    if (configured := environment.get_variable(USER_FILE)) is not None:
        path = environment.resolve(configured, environment.folder)
        if not path.is_file():
            raise _invalid_variable_error(USER_FILE, "must be an existing file")
        yield path, path.parent, True
    elif user_file is not None and user_file != project_file:
        yield user_file, user_file.parent, True


def _find_base(environment: Environment) -> Setting[Path]:
    configured = environment.get_variable(BASE)
    if configured is None:
        return Setting(environment.folder)
    path = environment.resolve(configured, environment.folder)
    if not path.is_dir():
        raise _invalid_variable_error(BASE, "must be an existing folder")
    return Setting(path, f"variable {BASE}")


def _merge_layers(
    layers: Sequence[_Layer],
    environment: Environment,
    base: Setting[Path],
    allow: Setting[tuple[Path, ...]],
    *,
    is_for_tenants: bool = False,
) -> Configuration:
    """Merge layers and environment variables, and check the paths in projects' files.

    Args:
        is_for_tenants: whether the agents become tenants. If so, the agents of every file are
            checked, and `rag.path` is not used.
    """
    rag: dict[str, Setting[Any]] = {}
    agents: dict[str, Agent] = {}
    named_by_project = {"path"}
    for layer in layers:
        rag |= layer.rag
        names = set(layer.rag)
        named_by_project = (
            named_by_project - names if layer.is_user_file else named_by_project | names
        )
        agents |= {agent.id: agent for agent in layer.agents}
    variables = dict(_read_variables(environment, base.value))
    settings = RagSettings(**(rag | variables | {"allow": allow}))
    path = replace(settings.path, value=base.value / settings.path.value)
    settings, adjusted = _limit_overlap(replace(settings, path=path))
    checked = {"model"} if is_for_tenants else {"path", "model"}
    permitted = [
        _check_inside_base(name, getattr(settings, name), settings, base.value)
        for name in sorted(checked & (named_by_project - set(variables)))
    ]
    confined = [agent for agent in agents.values() if is_for_tenants or not agent.is_user_file]
    refused, permitted_sources = _find_forbidden_sources(confined, allow, environment.home)
    return Configuration(
        settings,
        {id_: agent for id_, agent in agents.items() if id_ not in refused},
        _read_tool_flag(environment),
        base,
        tuple(layer.path for layer in layers),
        (
            *(warning for layer in layers for warning in layer.warnings),
            *adjusted,
            *filter(None, permitted),
            *permitted_sources,
        ),
        refused,
        "model" in named_by_project
        and not is_inside(settings.model.value or base.value, allow.value),
    )


def _limit_overlap(rag: RagSettings) -> tuple[RagSettings, list[str]]:
    maximum = rag.chunk_size.value // 2
    overlap = rag.chunk_overlap
    if overlap.value <= maximum:
        return rag, []
    warning = (
        f"{overlap.origin}: chunk_overlap {overlap.value} is over half of chunk_size"
        f" {rag.chunk_size.value}; {maximum} is used"
    )
    return replace(rag, chunk_overlap=replace(overlap, value=maximum)), [warning]


def _check_inside_base(
    name: str, setting: Setting[Path | None], rag: RagSettings, base: Path
) -> str | None:
    """Return a warning if a path is outside the base and `rag.allow` permits it.

    Raises:
        ConfigurationError: the path is outside the base, and `rag.allow` does not permit it.
    """
    if setting.value is None:
        return None
    is_database = name == "path" and rag.store.value == "sqlite"
    paths = [setting.value, rag.database] if is_database else [setting.value]
    outside = next((path for path in paths if not is_inside(path, [base])), None)
    if outside is None:
        return None
    if is_inside(outside, rag.allow.value):
        return f"{setting.origin}: {name} is outside {base}, as {rag.allow.origin} allows"
    raise _outside_base_error(setting.origin, f"rag.{name} leads to {outside.resolve()}", base)


def _find_forbidden_sources(
    agents: Sequence[Agent], allow: Setting[tuple[Path, ...]], home: Path
) -> tuple[dict[str, ConfigurationError], list[str]]:
    """Check that the sources of each agent are inside its base.

    Returns:
        errors by id of the agents with a forbidden source, and a warning for each source outside
        the base that `rag.allow` permits.
    """
    errors: dict[str, ConfigurationError] = {}
    warnings: list[str] = []
    for agent in agents:
        sources = agent.docs.sources
        outside = find_outside_patterns(sources.value, agent.base, allow.value, home)
        forbidden = next((source for source, allowed in outside.items() if not allowed), None)
        if forbidden is not None:
            message = f"the source {forbidden!r} of agent {agent.id!r} is outside the project"
            errors[agent.id] = _outside_base_error(sources.origin, message, agent.base)
            continue
        warnings += [
            f"{sources.origin}: the source {source!r} is outside {agent.base},"
            f" as {allow.origin} allows"
            for source in outside
        ]
    return errors, warnings


def _outside_base_error(origin: str, description: str, base: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{origin}: {description}; a project's file must contain only paths inside {base}",
        hint="move the files into that folder, or allow their folder in your own file, as in"
        " `rag: {allow: [~/notes]}` in ~/.config/swebash/agents.yaml",
    )


def _read_variables(environment: Environment, base: Path) -> Iterator[tuple[str, Setting[Any]]]:
    for name, variable in RAG_VARIABLES.items():
        if (text := environment.get_variable(variable)) is None:
            continue
        try:
            value = RAG_PARSERS[name](text)
        except InvalidValue as error:
            raise _invalid_variable_error(variable, str(error)) from None
        value = environment.resolve(value, base) if name == "path" else value
        yield name, Setting(value, f"variable {variable}")


def _read_tool_flag(environment: Environment) -> Setting[bool]:
    text = environment.get_variable(TOOL_FOR_ALL)
    if text is None:
        return Setting(value=False)
    try:
        return Setting(parse_flag(text), f"variable {TOOL_FOR_ALL}")
    except InvalidValue as error:
        raise _invalid_variable_error(TOOL_FOR_ALL, str(error)) from None


def _invalid_variable_error(name: str, problem: str) -> ConfigurationError:
    return ConfigurationError(
        f"the variable {name} {problem}", hint="set a valid value, or unset the variable"
    )


def _read_layer(
    path: Path,
    relative_to: Path,
    base: Setting[Path],
    environment: Environment,
    *,
    is_user_file: bool,
) -> _Layer:
    """Read the settings in a file.

    Args:
        relative_to: the folder of its relative paths.
        base: replaces `relative_to` for glob patterns if an environment variable sets the base.

    Raises:
        ConfigurationError: the file cannot be read, is not YAML, or has an invalid setting; the
            message has file, line and column.
    """
    reader = _AgentsFileReader(path)
    document = reader.load()
    if document is None:
        return _Layer(path, is_user_file, {}, (), Setting(()), ())
    if not isinstance(document, Mapping):
        raise reader.build_error(
            1, 1, "the document must be a mapping with the keys `rag` and `agents`"
        )
    rag = reader.read_block(document, "rag", RAG_PARSERS, "rag")
    allow = rag.pop("allow", Setting(()))
    allowed = tuple(environment.resolve(written_path, path.parent) for written_path in allow.value)
    for name in {"path", "model"} & set(rag):
        rag[name] = replace(rag[name], value=environment.resolve(rag[name].value, relative_to))
    glob_base = relative_to if base.origin == DEFAULT_ORIGIN else base.value
    agents = reader.read_agents(document, glob_base, is_user_file=is_user_file)
    return _Layer(path, is_user_file, rag, agents, Setting(allowed, allow.origin), reader.warnings)


class _AgentsFileReader:
    """Reads an agents.yaml, and reports errors with line and column."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.warnings: list[str] = []

    def load(self) -> Any:
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
            raise self.build_error(1, 1, f"the file is larger than {MAX_BYTES:,} bytes")
        try:
            return YAML(typ="rt", pure=True).load(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise self.build_error(1, 1, "the file is not UTF-8 text") from None
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
            # The parser's message about a duplicate key quotes values.
            why = "a key occurs twice" if "duplicate" in str(error.problem) else error.problem
            raise self.build_error(
                line, column, f"the file is not valid YAML: {why or 'unreadable'}"
            ) from None
        except (YAMLError, RecursionError):
            raise self.build_error(1, 1, "the file is not valid YAML") from None

    def build_error(self, line: int, column: int, problem: str) -> ConfigurationError:
        return ConfigurationError(
            f"{self._path}:{line}:{column}: {problem}", hint="correct the file"
        )

    def read_agents(self, document: Any, base: Path, *, is_user_file: bool) -> list[Agent]:
        entries: Any = document.get("agents")
        if entries is None:
            return []
        if not isinstance(entries, list):
            raise self._invalid_value_error(document, "agents", "must be a list of agents")
        agents: dict[str, Agent] = {}
        positions: Any = document["agents"].lc
        for index, entry in enumerate(entries):
            line, column = (number + 1 for number in positions.item(index))
            if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
                raise self.build_error(
                    line, column, "an agent must be a mapping with a text as its `id`"
                )
            id_ = str(entry["id"])
            if not id_.strip() or len(id_) > MAX_ID_LENGTH or not id_.isprintable():
                raise self._invalid_value_error(
                    entry, "id", f"must have 1 to {MAX_ID_LENGTH} printable characters"
                )
            if id_ in agents:
                raise self._invalid_value_error(entry, "id", f"{id_!r} is declared twice")
            docs = self.read_block(entry, "docs", DOCS_PARSERS, f"agent {id_}: docs")
            agents[id_] = Agent(
                id_,
                base,
                DocsSettings(**docs),
                f"{self._path}:{line}",
                _get_first_text(entry, "name"),
                _get_first_text(entry, "description"),
                _get_first_text(entry, *_PROMPT_KEYS),
                is_user_file,
            )
        return list(agents.values())

    def read_block(
        self, parent: Any, name: str, parsers: Mapping[str, Parser], label: str
    ) -> dict[str, Setting[Any]]:
        """Read the settings of a block; unknown settings become warnings."""
        block = parent.get(name)
        if block is None:
            return {}
        if not isinstance(block, Mapping):
            raise self._invalid_value_error(parent, name, "must be a mapping")
        settings: dict[str, Setting[Any]] = {}
        for key, value in block.items():
            parse = parsers.get(key) if isinstance(key, str) else None
            if parse is None:
                similar = difflib.get_close_matches(str(key), parsers, n=1)
                suggestion = f"; did you mean {similar[0]}?" if similar else ""
                origin = self._format_origin(block, key)
                self.warnings.append(f"{origin}: {label} has no setting {key}{suggestion}")
            elif value is not None:
                try:
                    parsed = parse(value)
                except InvalidValue as error:
                    raise self._invalid_value_error(block, key, str(error)) from None
                settings[str(key)] = Setting(parsed, self._format_origin(block, key))
        return settings

    def _format_origin(self, block: Any, key: Any) -> str:
        return f"{self._path}:{_find_owner(block, key).lc.key(key)[0] + 1}"

    def _invalid_value_error(self, block: Any, key: str, problem: str) -> ConfigurationError:
        line, column = _find_owner(block, key).lc.value(key)
        return self.build_error(line + 1, column + 1, f"{key} {problem}")


def _find_owner(block: Any, key: Any) -> Any:
    """Return the mapping that declares a key: the block, or a mapping merged into it by `<<`."""
    if key in (block.lc.data or {}):
        return block
    return next((_find_owner(merged, key) for merged in block.merge if key in merged), block)


def _get_first_text(entry: Any, *names: str) -> str:
    return next((str(entry[name]) for name in names if isinstance(entry.get(name), str)), "")
