"""Agents of agents.yaml as tenants: those with the strategy rag, and with sources."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.ingest.sources.roots import home_of_owner
from rag_assets.systems.agent_docs.configuration import Surroundings, load_file, users_file
from rag_assets.systems.agent_docs.manager import cached_models, pooling_of, require_known
from rag_assets.systems.agent_docs.settings import VARIABLES, Agent, Configuration
from rag_assets.tenants.file import absolute_path
from rag_assets.tenants.lists import ListedTenants
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.parsed_file import ParsedFile

PROFILE: Final = "agent-docs"
SOURCE: Final = "docs"
"""The name of an agent's one source."""

_TENANT_ID = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_LONGEST: Final = 63
_DIGEST: Final = 10
_FORMAT: Final = "3"
"""Raised when other tenants are made of the same file."""


def tenant_id_of(agent_id: str) -> str:
    """The id of an agent's tenant: its own, or a readable one that no other agent has.

    The agent's own id lies with the tenant, as `agent` of its source.
    """
    if _TENANT_ID.fullmatch(agent_id) and len(agent_id) <= _LONGEST:
        return agent_id
    digest = hashlib.sha256(agent_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    stem = re.sub("[^a-z0-9]+", "-", agent_id.lower()).strip("-")
    return f"{stem[: _LONGEST - _DIGEST - 1].strip('-') or 'agent'}-{digest}"


@dataclass(slots=True)
class _Found:
    """What files say, collected one after the other."""

    configs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    problems: list[RagAssetsError] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    complete: bool = True

    def add(self, config: Mapping[str, Any], place: str) -> None:
        """Add an agent; one of an id that another file has is a problem, and neither counts."""
        id_, agent = config["id"], config["sources"][0]["agent"]
        if id_ in self.places:
            self.configs.pop(id_, None)
            self._refuse(
                id_,
                f"agent {agent!r} is declared at {self.places[id_]} and at {place}",
                "keep one of the two, or rename one",
            )
            return
        self.places[id_] = place
        try:
            Tenant.from_config(config)
        except ConfigurationError as error:
            self._refuse(id_, f"{place}: {error.message}", error.hint)
        else:
            self.configs[id_] = config

    def _refuse(self, id_: str, what: str, hint: str | None) -> None:
        self.kept.add(id_)
        self.problems.append(ConfigurationError(what, hint=hint))


def agents(written: Any, folder: Path, cache: Path | None) -> ListedTenants:
    """The tenants of the files that `agents` names; see TenantList.

    A file that cannot be read leaves the tenants of all files as they are. An agent whose paths
    lead out of its base is no tenant, whatever it was before: nothing of it is answered any more.
    """
    found = _Found()
    for path in _paths(written, folder):
        try:
            declared, refused = _declared(path, cache)
        except ConfigurationError as error:
            # A variable is wrong for every file.
            if error.advice not in {one.advice for one in found.problems}:
                found.problems.append(error)
            found.complete = False
            continue
        found.problems += refused
        for config, place in declared:
            found.add(config, place)
    return ListedTenants(
        found.configs,
        found.places,
        tuple(found.problems),
        frozenset(found.kept),
        found.complete,
    )


AGENTS: Final = agents


def _paths(written: Any, folder: Path) -> list[Path]:
    listed = [written] if isinstance(written, str) else written
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise ConfigurationError(
            "tenants.yaml: agents must be a list of paths of files agents.yaml",
            hint="write for example `agents: [.swebash/agents.yaml]`",
        )
    paths = (absolute_path(one, folder, "path in agents") for one in listed)
    return list(dict.fromkeys(Path(os.path.normpath(path)) for path in paths))


class _Refusing(Exception):
    """A file some of whose agents are refused: what it says depends on links, and is not kept."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration


def _declared(
    path: Path, cache: Path | None
) -> tuple[list[tuple[dict[str, Any], str]], list[ConfigurationError]]:
    """Return the tenants of a file, each with its place, and the errors of agents that are none."""
    around = _surroundings()
    users = users_file(around)

    def read(_: bytes) -> list[list[Any]]:
        configuration = load_file(path, around)
        if configuration.refused:
            raise _Refusing(configuration)
        return list(_tenants_of(configuration))

    refused: list[ConfigurationError] = []
    try:
        if cache is None:
            kept = read(b"")
        else:
            given = {name: around.variable(name) for name in VARIABLES}
            about = json.dumps([_FORMAT, str(path), str(around.home), given], sort_keys=True)
            name = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]
            content = about.encode() + (b"" if users is None else _content(users)) + _content(path)
            kept = ParsedFile(cache / f"agents-{name}.json").get(content, read)
    except _Refusing as error:
        kept = list(_tenants_of(error.configuration))
        refused += error.configuration.refused.values()
    declared = []
    for config, place, projects_model in kept:
        try:
            declared.append((_with_model(config, projects_model), place))
        except ConfigurationError as error:
            refused.append(error)
    return declared, refused


def _surroundings() -> Surroundings:
    """Those of this process, with a home folder that is the same in every process of its user."""
    around = Surroundings.of_process()
    try:
        return replace(around, home=home_of_owner())
    except ConfigurationError:
        return around


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # Reading it says what is wrong; that is not kept.


def _tenants_of(configuration: Configuration) -> Iterator[list[Any]]:
    """Yield the configuration of each tenant, its place, and that of a model of the project's."""
    model = configuration.rag.model.origin if configuration.has_projects_model else ""
    for agent in configuration.agents.values():
        if agent.docs.strategy.value == "rag" and agent.docs.sources.value:
            yield [_config_of(configuration, agent), agent.origin, model]


def _config_of(configuration: Configuration, agent: Agent) -> dict[str, Any]:
    rag, docs = configuration.rag, agent.docs
    id_ = tenant_id_of(agent.id)
    config: dict[str, Any] = {
        "id": id_,
        "profile": PROFILE,
        "sources": [
            {
                "name": SOURCE,
                "type": "globs",
                "base": str(agent.base),
                "within": [str(agent.base), *map(str, rag.allow.value)],
                "patterns": list(docs.sources.value),
                "agent": agent.id,
            }
        ],
        "chunker": {
            "chunker": "passage",
            "max_characters": rag.chunk_size.value,
            "overlap": rag.chunk_overlap.value,
        },
        "retrieval": {
            "top_k": docs.top_k.value,
            "mode": docs.mode.value,
            **({} if docs.min_score.value is None else {"min_score": docs.min_score.value}),
        },
    }
    if id_ != agent.id:
        config["name"] = agent.id
    if rag.model.value is not None:
        config["embedder"] = _embedder(rag.model.value, pooling_of(rag.model.value))
    return config


def _embedder(folder: Path, pooling: str | None) -> dict[str, Any]:
    return {"provider": "local", "path": str(folder)} | ({"pooling": pooling} if pooling else {})


def _with_model(config: dict[str, Any], projects_model: str) -> dict[str, Any]:
    """Return a configuration with the model that another program left beside the base, if any.

    Raises:
        ConfigurationError: a project's file names a model that is not known.
    """
    if "embedder" in config:
        if projects_model:
            require_known(Path(config["embedder"]["path"]), projects_model)
        return config
    base, *allowed = map(Path, config["sources"][0]["within"])
    for folder in cached_models(base, allowed):
        return {**config, "embedder": _embedder(folder, "cls")}
    return config
