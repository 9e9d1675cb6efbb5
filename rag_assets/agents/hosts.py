"""Configurations by which programs start the server of an agent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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


def configuration_text(host: Host, command: str, agents: Sequence[str]) -> str:
    """What to put into a host's file, with a server for each agent.

    Args:
        host: the program.
        command: the absolute path of ours.
        agents: their ids.
    """
    servers = {
        f"rag-{agent}": {
            **(host.extra or {}),
            "command": command,
            "args": ["agent", "mcp", f"@{agent}"],
        }
        for agent in agents
    }
    if not host.is_toml:
        return json.dumps({host.key: servers}, indent=2, ensure_ascii=False)
    # Strings and lists of strings are the same in JSON and TOML.
    tables = (
        "\n".join(
            [
                f"[{host.key}.{json.dumps(name)}]",
                *(f"{key} = {json.dumps(value)}" for key, value in server.items()),
            ]
        )
        for name, server in servers.items()
    )
    return "\n\n".join(tables)
