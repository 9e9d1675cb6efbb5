"""The settings of a process that decide whether a document can be processed, and their hash.

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

from rag_assets.common.hashing import compute_key
from rag_assets.common.settings import Settings

_READ_LATER: Final = re.compile(
    r"RAG_ASSETS_MASTER_KEY\w*|\w*_PROXY|SSL_CERT_\w+|\w*_CA_BUNDLE|(AWS|AZURE|GOOGLE)_\w+",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(r"\$\{?([A-Za-z_]\w*)")
_KEY_LENGTH: Final = 12


def variables_in_use(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that tenants.yaml names or libraries read, with values."""
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


def environment_key(settings: Settings) -> str:
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
    variables = variables_in_use(settings, os.environ)
    packages = Path(sysconfig.get_path("purelib"))
    installed = packages.stat().st_mtime_ns if packages.exists() else 0
    return compute_key("environment", permitted, places, variables, installed)[:_KEY_LENGTH]
