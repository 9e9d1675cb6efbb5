"""Hosts: programs that start the MCP server of an agent, and their configuration files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.configuration import Environment
from rag_assets.systems.agent_docs.settings import USER_FILE, VARIABLES

_Servers = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Host:
    """A program that starts MCP servers.

    Attributes:
        file: path of the configuration file.
        key: key of the servers in the file.
        extra: values that the host needs for each server, in addition to the command.
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


def find_host(name: str) -> Host:
    """Return the host with a name.

    Raises:
        ConfigurationError: the host is unknown.
    """
    host = HOSTS.get(name.lower().replace(" ", "-"))
    if host is None:
        raise ConfigurationError(
            f"there is no host {name!r}", hint=f"choose one of: {', '.join(HOSTS)}"
        )
    return host


def build_server_configs(
    host: Host, command: str, agents: Sequence[str], environment: Environment
) -> dict[str, dict[str, Any]]:
    """Return the configuration of each agent's server, by server name.

    Hosts start servers in a folder of their own and pass few variables to them. So the
    configuration includes the working directory, and our environment variables that are set now.
    """
    names = (*VARIABLES, USER_FILE)
    env = {name: value for name in names if (value := environment.get_variable(name)) is not None}
    servers: dict[str, dict[str, Any]] = {}
    for agent in agents:
        # The server's name must be unique and accepted by all hosts.
        stem = name = f"rag-{re.sub('[^A-Za-z0-9]+', '-', agent).strip('-') or 'agent'}"
        number = 1
        while name in servers:
            number += 1
            name = f"{stem}-{number}"
        servers[name] = {
            **(host.extra or {}),
            "command": command,
            "args": ["agent", "mcp", f"@{agent}", "--folder", str(environment.folder)],
            **({"env": env} if env else {}),
        }
    return servers


def render_servers(host: Host, servers: _Servers) -> str:
    """Return the text of a host's file with only these servers."""
    if not host.is_toml:
        return json.dumps({host.key: servers}, indent=2, ensure_ascii=False)
    tables = []
    for name, server in servers.items():
        lines = (f"{key} = {_format_toml(value)}" for key, value in server.items())
        tables.append("\n".join([f"[{host.key}.{name}]", *lines]))
    return "\n\n".join(tables)


def merge_servers(host: Host, text: str, servers: _Servers) -> str:
    """Add servers to the text of a host's file; a server with the same name is replaced.

    Args:
        text: the content of the file; "" if it does not exist.

    Raises:
        ConfigurationError: the file cannot be edited safely, such as JSON with comments.
    """
    if not text.strip():
        return render_servers(host, servers) + "\n"
    return (_merge_toml if host.is_toml else _merge_json)(host, text, servers)


def _merge_json(host: Host, text: str, servers: _Servers) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        raise _merge_error(host, "the file is not valid JSON, or contains comments") from None
    if not isinstance(document, dict) or not isinstance(document.get(host.key, {}), dict):
        raise _merge_error(host, f"the file, or its {host.key!r}, is not a JSON object")
    document[host.key] = {**document.get(host.key, {}), **servers}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _merge_toml(host: Host, text: str, servers: _Servers) -> str:
    kept_lines: list[str] = []
    replaced = tuple(f"{host.key}.{name}." for name in servers)
    is_replaced = False
    for line in text.splitlines():
        if header := _TOML_HEADER.match(line):
            name = header["name"].replace(" ", "").replace('"', "")
            is_replaced = f"{name}.".startswith(replaced)
        if not is_replaced:
            kept_lines.append(line)
    parts = ["\n".join(kept_lines).rstrip(), render_servers(host, servers)]
    merged = "\n\n".join(filter(None, parts)) + "\n"
    try:
        before, after = tomllib.loads(text), tomllib.loads(merged)
    except tomllib.TOMLDecodeError:
        raise _merge_error(
            host, f"the file is not valid TOML, or it {_describe_unsupported_form(host)}"
        ) from None
    # The lines were edited without parsing TOML, so the result is verified.
    if after != before | {host.key: {**before.get(host.key, {}), **servers}}:
        raise _merge_error(host, f"it {_describe_unsupported_form(host)}")
    return merged


def _describe_unsupported_form(host: Host) -> str:
    return f"declares servers in another form than [{host.key}.NAME] tables"


def _merge_error(host: Host, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{host.file} of {host.title} was not changed: {reason}",
        hint="run the command without --write, and add the printed configuration by hand",
    )


def _format_toml(value: str | Sequence[str] | Mapping[str, str]) -> str:
    """Format a value as TOML; strings and lists are written as JSON, which TOML accepts."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_format_toml(v)}" for key, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
