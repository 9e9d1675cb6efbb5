"""The address of the panel, as browsers see it.

Browsers send a cookie to every port of its host, and another user of the machine may listen at
another port of 127.0.0.1. So each session on loopback has its own secret host name below
`.localhost`, which pages disclose only after signing in.

| variable | default | meaning |
|---|---|---|
| RAG_ASSETS_PANEL_URL | none | https origin of the panel, or http of a tunnel; else loopback only |
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from rag_assets.api.authentication import is_loopback
from rag_assets.common.errors import ConfigurationError

PATH = "/panel"
URL_VARIABLE = "RAG_ASSETS_PANEL_URL"
OTHER_LOOPBACK: Final[Mapping[str, str]] = {
    "127.0.0.1": "::1",
    "localhost": "::1",
    "::1": "127.0.0.1",
}
"""The other address to which browsers resolve names below `.localhost`."""
_SESSION_NAME: Final = re.compile(r"panel-[0-9a-f]{32}\.localhost")
_HTTP_PORT: Final = 80


@dataclass(frozen=True, slots=True)
class PanelSettings:
    """The address of the panel.

    Attributes:
        origin: scheme, host and port, as browsers write them; None means loopback, at the port of
            the service.
    """

    origin: str | None = None

    @property
    def is_secure(self) -> bool:
        """Return whether browsers reach the panel by https."""
        return self.origin is not None and self.origin.startswith("https://")

    @property
    def cookie_name(self) -> str:
        """Return the name of the session cookie.

        Over https, it has a prefix that prevents other hosts of the domain from setting it.
        """
        return "__Host-rag-assets-panel" if self.is_secure else "rag-assets-panel"

    @property
    def cookie_path(self) -> str:
        """Return the path of the session cookie; the prefix of its name requires `/`."""
        return "/" if self.is_secure else PATH

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> PanelSettings:
        """Read the address of the panel from the environment.

        Raises:
            ConfigurationError: the value is not an origin, or is http on another machine.
        """
        text = (os.environ if environ is None else environ).get(URL_VARIABLE, "").strip()
        return cls(_parse_origin(text) if text else None)

    def serves(self, host: str) -> bool:
        """Return whether a service that listens at the address `host` has a panel."""
        return self.is_secure or host in OTHER_LOOPBACK

    def find_own_origin(self, scope: Scope) -> str | None:
        """Return the origin of our pages for a request; None if the request's Host is not ours."""
        if self.is_secure:
            return self.origin
        address = f"//{Headers(scope=scope).get('host', '')}"
        name, port = _find_hostname(address) or "", _find_port_number(address) or _HTTP_PORT
        # The name of any site can resolve to this machine.
        is_own_name = is_loopback(name) or _SESSION_NAME.fullmatch(name) is not None
        ports = {(scope.get("server") or ("", None))[1]}
        if self.origin is not None:
            ports.add(_find_port_number(self.origin) or _HTTP_PORT)
        return _build_http_origin(name, port) if is_own_name and port in ports else None

    def is_session_origin(self, origin: str) -> bool:
        """Return whether a session may start at an origin.

        On loopback, the origin must have a random host name.
        """
        return self.is_secure or _SESSION_NAME.fullmatch(_find_hostname(origin) or "") is not None

    def create_session_origin(self, port: int | None) -> str:
        """Return the origin of a new session; on loopback, with a random host name.

        Args:
            port: port of the service, for a panel without the setting.
        """
        if self.is_secure and self.origin is not None:
            return self.origin
        if self.origin is not None:
            port = _find_port_number(self.origin)
        return _build_http_origin(f"panel-{secrets.token_hex(16)}.localhost", port or _HTTP_PORT)


def _build_http_origin(name: str, port: int) -> str:
    host = f"[{name}]" if ":" in name else name
    return f"http://{host}" + (f":{port}" if port != _HTTP_PORT else "")


def _parse_origin(text: str) -> str:
    parts = urlsplit(text)
    has_only_origin = parts.path in {"", "/", PATH, f"{PATH}/"} and not (
        parts.query or parts.fragment or parts.username or parts.password
    )
    name = _find_hostname(text)
    if parts.scheme not in {"http", "https"} or not name or not has_only_origin:
        raise ConfigurationError(
            f"{URL_VARIABLE} is not a valid origin",
            hint="set it to an origin such as https://rag.example, without a path",
        )
    if parts.scheme == "http" and not is_loopback(name):
        raise ConfigurationError(
            f"{URL_VARIABLE} uses http for another machine, {name}: others could read the sessions",
            hint="set it to the https address of a proxy in front of the service",
        )
    try:
        port = parts.port
    except ValueError:
        raise ConfigurationError(
            f"{URL_VARIABLE} has an invalid port", hint="use a port from 1 to 65535"
        ) from None
    host = f"[{name}]" if ":" in name else name
    default_port = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in {None, default_port} else "")


def _find_hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _find_port_number(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        return None
