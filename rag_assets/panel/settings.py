"""Where the panel is, as browsers see it.

| variable | default | meaning |
|---|---|---|
| RAG_ASSETS_PANEL_URL | none | https origin of the panel; without one, it is at loopback only |
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from rag_assets.api.client_addresses import is_loopback
from rag_assets.common.errors import ConfigurationError

PATH = "/panel"
URL_VARIABLE = "RAG_ASSETS_PANEL_URL"


@dataclass(frozen=True, slots=True)
class PanelSettings:
    """Where the panel is.

    Attributes:
        origin: scheme, host and port, as browsers write them; None: any name of loopback.
    """

    origin: str | None = None

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by https."""
        return self.origin is not None and self.origin.startswith("https://")

    @property
    def cookie_name(self) -> str:
        """Of the session; the prefix keeps other hosts of the domain from setting one."""
        return "__Host-rag-assets-panel" if self.is_secure else "rag-assets-panel"

    @property
    def cookie_path(self) -> str:
        """Where browsers send it; the prefix demands the root."""
        return "/" if self.is_secure else PATH

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> PanelSettings:
        """Read the setting.

        Raises:
            ConfigurationError: it is no origin, or one that others reach in cleartext.
        """
        text = (os.environ if environ is None else environ).get(URL_VARIABLE, "").strip()
        return cls(_origin(text) if text else None)

    def serves(self, host: str) -> bool:
        """Whether there is a panel for a service that listens at this address."""
        return self.is_secure or is_loopback(host)

    def own_origin(self, headers: Headers) -> str | None:
        """The origin of our pages for a request; None: it came by a name that is not ours."""
        if self.origin is not None:
            return self.origin
        # A site's name can be made to mean this machine: only loopback's own names count.
        host = headers.get("host", "")
        name = _hostname(f"//{host}")
        return f"http://{host}" if name is not None and is_loopback(name) else None


def _origin(text: str) -> str:
    parts = urlsplit(text)
    whole = parts.path in {"", "/", PATH, f"{PATH}/"} and not (
        parts.query or parts.fragment or parts.username or parts.password
    )
    name = _hostname(text)
    if parts.scheme not in {"http", "https"} or not name or not whole:
        raise ConfigurationError(
            f"{URL_VARIABLE} is not usable", hint="as in https://rag.example, without a path"
        )
    if parts.scheme == "http" and not is_loopback(name):
        raise ConfigurationError(
            f"{URL_VARIABLE} is http, and {name} is another machine's name: sessions could be read"
            " on the way",
            hint="give it an https address, of a proxy before the service",
        )
    port = _port(text)
    shown = f"[{name}]" if ":" in name else name
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{shown}" + (f":{port}" if port not in {None, usual} else "")


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _port(url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        raise ConfigurationError(
            f"{URL_VARIABLE} has no usable port", hint="from 1 to 65535"
        ) from None
