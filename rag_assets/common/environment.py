"""Environment variables that settings refer to, and a hash of the settings that affect documents.

Documents that fail because of a setting record the environments in which they failed. A process
with a different environment retries them. So a corrected setting takes effect without a command.
"""

from __future__ import annotations

import os
import re
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import compute_key
from rag_assets.common.settings import Settings

_READ_LATER: Final = re.compile(
    r"RAG_ASSETS_MASTER_KEY\w*|\w*_PROXY|SSL_CERT_\w+|\w*_CA_BUNDLE|(AWS|AZURE|GOOGLE)_\w+",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"\$\{?([A-Za-z_]\w*)")
_KEY_LENGTH: Final = 12


def collect_variables_in_use(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables, with values, that tenants.yaml names or libraries read."""
    try:
        listed = settings.tenants_file.read_text(errors="replace")
    except OSError:
        listed = ""
    named = {*_NAMED.findall(listed)}
    return {
        name: value
        for name, value in environment.items()
        if name in named or _READ_LATER.fullmatch(name)
    }


def compute_environment_key(settings: Settings) -> str:
    """Return a short hash of the settings that decide whether documents can be processed.

    It covers permitted endpoints and roots, the variables in use, and the installed packages.
    """
    endpoints = settings.private_endpoints
    permitted = [
        sorted(map(str, endpoints.hosts)),
        sorted(map(str, endpoints.networks)),
        sorted(endpoints.identity_hosts),
    ]
    places = [*map(str, settings.allowed_roots), str(settings.master_key_file)]
    variables = collect_variables_in_use(settings, os.environ)
    packages = Path(sysconfig.get_path("purelib"))
    installed = packages.stat().st_mtime_ns if packages.exists() else 0
    return compute_key("environment", permitted, places, variables, installed)[:_KEY_LENGTH]


_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def require_variable_reference(setting: str, value: str) -> None:
    """Require the name of a variable in the form `$NAME`; the error does not quote the value."""
    if _REFERENCE.fullmatch(value) is None:
        raise ConfigurationError(
            f"{setting} is not a reference to an environment variable",
            hint="write $NAME and set the variable NAME; the secret itself must not be written"
            " here",
        )


def resolve_variable_reference(setting: str, reference: str) -> str:
    """Return the value of the environment variable that a setting names as `$NAME`."""
    name = reference.removeprefix("$")
    value = os.environ.get(name)
    if not value:
        raise ConfigurationError(
            f"{setting} refers to the environment variable {name}, which is not set",
            hint="set the variable in the environment of rag-assets (for the daemon, before"
            " `rag-assets up`), or remove the setting from tenants.yaml",
        )
    return value
