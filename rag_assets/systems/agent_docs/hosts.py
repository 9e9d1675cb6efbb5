"""Configurations by which programs start the server of an agent."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.configuration import Surroundings
from rag_assets.systems.agent_docs.settings import USER_FILE, VARIABLES


@dataclass(frozen=True, slots=True)
class Host:
    """A program that starts servers.

    Attributes:
        title: its name.
        file: where its configuration lies.
        key: of the servers in that file.
        extra: what it wants of each server beside the command.
        is_toml: whether the file is TOML rather than JSON.
    """

    title: str
    file: str
    key: str = "mcpServers"
    extra: Mapping[str, Any] | None = None
    is_toml: bool = False


HOSTS: Final[Mapping[str, Host]] = {
    "claude-code": Host("Claude Code", ".mcp.json", extra={"type": "stdio"}),
    "cursor": Host("Cursor", ".cursor/mcp.json"),
    "vscode": Host("VS Code", ".vscode/mcp.json", "servers", {"type": "stdio"}),
    "codex": Host("Codex", "~/.codex/config.toml", "mcp_servers", is_toml=True),
    "gemini": Host("Gemini CLI", ".gemini/settings.json"),
    "zed": Host("Zed", "~/.config/zed/settings.json", "context_servers", {"env": {}}),
}


_TOML_HEADER: Final = re.compile(r"\s*\[{1,2}\s*(?P<name>[^\[\]]+?)\s*\]{1,2}\s*(?:#.*)?$")


def host_of(name: str) -> Host:
    """A host by its name.

    Raises:
        ConfigurationError: there is none of that name.
    """
    found = HOSTS.get(name.lower().replace(" ", "-"))
    if found is None:
        raise ConfigurationError(f"no host {name!r}", hint=f"hosts are: {', '.join(HOSTS)}")
    return found


def servers_of(
    host: Host, command: str, agents: Sequence[str], around: Surroundings
) -> dict[str, dict[str, Any]]:
    """Return the server of each agent, by its name in a host's file.

    A server is started in the present folder and with the variables that are set now: hosts start
    servers wherever they are themselves, and some hand on few variables.

    Args:
        host: the program.
        command: the absolute path of ours.
        agents: their ids.
        around: the folder and the variables.
    """
    variables = (*VARIABLES, USER_FILE)
    env = {name: value for name in variables if (value := around.variable(name)) is not None}
    return {
        name: {
            **(host.extra or {}),
            "command": command,
            "args": ["agent", "mcp", f"@{agent}", "--folder", str(around.folder)],
            **({"env": env} if env else {}),
        }
        for name, agent in _names(agents).items()
    }


def configuration_text(host: Host, servers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a host's file that has these servers alone."""
    if not host.is_toml:
        return json.dumps({host.key: servers}, indent=2, ensure_ascii=False)
    return "\n\n".join(_toml_table(host, name, server) for name, server in servers.items())


def merged_text(host: Host, text: str, servers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the text of a host's file with these servers, and with all else that it holds.

    A server of the same name is replaced.

    Args:
        host: the program.
        text: of its file; "" where there is none.
        servers: by name.

    Raises:
        ConfigurationError: the file is not what could be merged into, as JSON with comments.
    """
    if not text.strip():
        return configuration_text(host, servers) + "\n"
    return (_merged_toml if host.is_toml else _merged_json)(host, text, servers)


def _merged_json(host: Host, text: str, servers: Mapping[str, Mapping[str, Any]]) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        raise _not_mergeable(host, "it is not JSON, or has comments") from None
    if not isinstance(document, dict) or not isinstance(document.get(host.key, {}), dict):
        raise _not_mergeable(host, f"it is not an object with an object {host.key!r}")
    document[host.key] = {**document.get(host.key, {}), **servers}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _merged_toml(host: Host, text: str, servers: Mapping[str, Mapping[str, Any]]) -> str:
    kept: list[str] = []
    replaced = {f"{host.key}.{name}" for name in servers}
    is_replaced = False
    for line in text.splitlines():
        if header := _TOML_HEADER.match(line):
            name = header["name"].replace(" ", "").replace('"', "")
            is_replaced = any(name == one or name.startswith(f"{one}.") for one in replaced)
        if not is_replaced:
            kept.append(line)
    parts = ["\n".join(kept).rstrip(), configuration_text(host, servers)]
    merged = "\n\n".join(filter(None, parts)) + "\n"
    try:
        before, after = tomllib.loads(text), tomllib.loads(merged)
    except tomllib.TOMLDecodeError:
        raise _not_mergeable(host, "it is not TOML, or holds servers in another form") from None
    # The lines were cut without understanding all of TOML: the outcome must be the wanted one.
    if after != before | {host.key: {**before.get(host.key, {}), **servers}}:
        raise _not_mergeable(host, "it holds servers in another form")
    return merged


def _not_mergeable(host: Host, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{host.file} of {host.title} stays as it is: {why}",
        hint="print the configuration without --write, and add it by hand",
    )


def _toml_table(host: Host, name: str, server: Mapping[str, Any]) -> str:
    lines = (f"{key} = {_toml(value)}" for key, value in server.items())
    return "\n".join([f"[{host.key}.{name}]", *lines])


def _names(agents: Sequence[str]) -> dict[str, str]:
    """Names of servers that all hosts accept, each once, and their agents."""
    names: dict[str, str] = {}
    for agent in agents:
        plain = name = f"rag-{re.sub('[^A-Za-z0-9]+', '-', agent).strip('-') or 'agent'}"
        number = 1
        while name in names:
            number += 1
            name = f"{plain}-{number}"
        names[name] = agent
    return names


def _toml(value: str | Sequence[str] | Mapping[str, str]) -> str:
    """A value as TOML; its strings, and lists of them, are those of JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
