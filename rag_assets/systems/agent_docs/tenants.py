"""Tenants from agents.yaml files: one for each agent with sources and the strategy `rag`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.ingest.sources.disk import find_owner_home
from rag_assets.systems.agent_docs.configuration import Environment, load_file
from rag_assets.systems.agent_docs.manager import (
    find_cached_models,
    get_default_pooling,
    require_published_model,
)
from rag_assets.systems.agent_docs.settings import VARIABLES, Agent, Configuration
from rag_assets.tenants.file import ListedTenants, ParsedFile, resolve_path
from rag_assets.tenants.model import Tenant

PROFILE: Final = "agent-docs"
SOURCE: Final = "docs"
"""Name of the only source of a tenant that is derived from an agent."""

_TENANT_ID = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_MAX_ID_LENGTH: Final = 63
_DIGEST_LENGTH: Final = 10
_CACHE_VERSION: Final = "3"
"""Increased whenever the tenants of the same file would change."""


def derive_tenant_id(agent_id: str) -> str:
    """Return the tenant id of an agent: its own id if valid, else a readable unique id.

    The tenant's source stores the agent's own id in the setting `agent`.
    """
    if _TENANT_ID.fullmatch(agent_id) and len(agent_id) <= _MAX_ID_LENGTH:
        return agent_id
    digest = hashlib.sha256(agent_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    stem = re.sub("[^a-z0-9]+", "-", agent_id.lower()).strip("-")
    return f"{stem[: _MAX_ID_LENGTH - _DIGEST_LENGTH - 1].strip('-') or 'agent'}-{digest}"


def list_tenants(value: Any, folder: Path, cache: Path | None) -> ListedTenants:
    """List the tenants of the files in the key `agents` of tenants.yaml; see TenantList.

    If a file cannot be read, the tenants of all files stay unchanged. An agent with sources outside
    its base does not become a tenant; if it was a tenant before, that tenant no longer answers.
    """
    collector = _TenantCollector()
    for path in _parse_paths(value, folder):
        try:
            tenants, errors = _read_tenants(path, cache)
        except ConfigurationError as error:
            # An invalid variable causes the same error for every file.
            if error.advice not in {problem.advice for problem in collector.problems}:
                collector.problems.append(error)
            collector.is_complete = False
            continue
        collector.problems += errors
        for config, origin in tenants:
            collector.add(config, origin)
    return ListedTenants(
        collector.configs,
        collector.origins,
        tuple(collector.problems),
        frozenset(collector.kept),
        collector.is_complete,
    )


AGENTS: Final = list_tenants


@dataclass(slots=True)
class _TenantCollector:
    """Collects the tenants and problems of several files; see ListedTenants."""

    configs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    problems: list[RagAssetsError] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    is_complete: bool = True

    def add(self, config: Mapping[str, Any], origin: str) -> None:
        """Add the tenant of an agent; if two files declare the agent, report it and add neither."""
        id_, agent = config["id"], config["sources"][0]["agent"]
        if id_ in self.origins:
            self.configs.pop(id_, None)
            self._report_problem(
                id_,
                f"agent {agent!r} is declared at {self.origins[id_]} and at {origin}",
                "remove or rename one of the two agents",
            )
            return
        self.origins[id_] = origin
        try:
            Tenant.from_config(config)
        except ConfigurationError as error:
            self._report_problem(id_, f"{origin}: {error.message}", error.hint)
        else:
            self.configs[id_] = config

    def _report_problem(self, id_: str, problem: str, hint: str | None) -> None:
        self.kept.add(id_)
        self.problems.append(ConfigurationError(problem, hint=hint))


def _parse_paths(value: Any, folder: Path) -> list[Path]:
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        raise ConfigurationError(
            "tenants.yaml: agents must be a list of paths to agents.yaml files",
            hint="write for example `agents: [.swebash/agents.yaml]`",
        )
    absolute = (resolve_path(path, folder, "path in agents") for path in paths)
    return list(dict.fromkeys(Path(os.path.normpath(path)) for path in absolute))


class _Uncacheable(Exception):
    """Agents were refused because a link leads out of their base.

    The targets of links are not part of the cache key, so this result must not be cached.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration


def _read_tenants(
    path: Path, cache: Path | None
) -> tuple[list[tuple[dict[str, Any], str]], list[ConfigurationError]]:
    """Return (configuration, origin) of each tenant in a file, and the errors of its agents."""
    environment = Environment.from_process()
    with suppress(ConfigurationError):
        # The home folder is the same in every process of this user, whatever HOME is.
        environment = replace(environment, home=find_owner_home())
    user_file = environment.find_user_file()

    def parse(_: bytes) -> list[list[Any]]:
        configuration = load_file(path, environment)
        if configuration.refused:
            raise _Uncacheable(configuration)
        return list(_build_tenants(configuration))

    errors: list[ConfigurationError] = []
    try:
        if cache is None:
            parsed = parse(b"")
        else:
            variables = {name: environment.get_variable(name) for name in VARIABLES}
            facts = [_CACHE_VERSION, str(path), str(environment.home), variables]
            key = json.dumps(facts, sort_keys=True).encode()
            name = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]
            content = key + (_read_bytes(user_file) if user_file else b"") + _read_bytes(path)
            parsed = ParsedFile(cache / f"agents-{name}.json").get(content, parse)
    except _Uncacheable as error:
        parsed = list(_build_tenants(error.configuration))
        errors += error.configuration.refused.values()
    tenants = []
    for config, origin, model_origin in parsed:
        try:
            tenants.append((_add_embedder(config, model_origin), origin))
        except ConfigurationError as error:
            errors.append(error)
    return tenants, errors


def _read_bytes(path: Path) -> bytes:
    """Return the content of a file; b"" if it cannot be read, which load_file reports."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _build_tenants(configuration: Configuration) -> Iterator[list[Any]]:
    """Yield [configuration, origin, model origin] of each tenant; see _add_embedder."""
    model_origin = configuration.rag.model.origin if configuration.has_project_model else ""
    for agent in configuration.agents.values():
        if agent.docs.strategy.value == "rag" and agent.docs.sources.value:
            yield [_build_tenant(configuration, agent), agent.origin, model_origin]


def _build_tenant(configuration: Configuration, agent: Agent) -> dict[str, Any]:
    rag, docs = configuration.rag, agent.docs
    id_ = derive_tenant_id(agent.id)
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
        config["embedder"] = _build_embedder_config(
            rag.model.value, get_default_pooling(rag.model.value)
        )
    return config


def _build_embedder_config(folder: Path, pooling: str | None) -> dict[str, Any]:
    return {"provider": "local", "path": str(folder)} | ({"pooling": pooling} if pooling else {})


def _add_embedder(config: dict[str, Any], model_origin: str) -> dict[str, Any]:
    """Return a tenant's configuration, with a cached model of another program if it names none.

    Args:
        model_origin: file and line if a project's file names the model; else "".

    Raises:
        ConfigurationError: a project's file names an unpublished model.
    """
    if "embedder" in config:
        if model_origin:
            require_published_model(Path(config["embedder"]["path"]), model_origin)
        return config
    base, *allowed = map(Path, config["sources"][0]["within"])
    for folder in find_cached_models(base, allowed):
        return {**config, "embedder": _build_embedder_config(folder, "cls")}
    return config
