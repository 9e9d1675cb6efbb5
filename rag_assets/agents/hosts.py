"""Configurations by which programs start the server of an agent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.agents.configuration import Surroundings
from rag_assets.agents.values import USER_FILE, VARIABLES
from rag_assets.common.errors import ConfigurationError


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


def host_of(name: str) -> Host:
    """A host by its name.

    Raises:
        ConfigurationError: there is none of that name.
    """
    found = HOSTS.get(name.lower().replace(" ", "-"))
    if found is None:
        raise ConfigurationError(f"no host {name!r}", hint=f"hosts are: {', '.join(HOSTS)}")
    return found


def configuration_text(
    host: Host, command: str, agents: Sequence[str], around: Surroundings
) -> str:
    """What to put into a host's file, with a server for each agent.

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
    folder = str(around.folder)
    servers = {
        name: {
            **(host.extra or {}),
            "command": command,
            "args": ["agent", "mcp", f"@{agent}", "--folder", folder],
            **({"env": env} if env else {}),
        }
        for name, agent in _names(agents).items()
    }
    if not host.is_toml:
        return json.dumps({host.key: servers}, indent=2, ensure_ascii=False)
    return "\n\n".join(
        "\n".join(
            [f"[{host.key}.{name}]", *(f"{key} = {_toml(one)}" for key, one in server.items())]
        )
        for name, server in servers.items()
    )


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
