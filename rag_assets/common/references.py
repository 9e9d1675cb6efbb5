"""Settings that name an environment variable, so that files and tables contain no secrets."""

from __future__ import annotations

import os
import re

from rag_assets.common.errors import ConfigurationError

_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def require_reference(setting: str, value: str) -> None:
    """Require a value of the form `$NAME`; the error does not quote the value."""
    if _REFERENCE.fullmatch(value) is None:
        raise ConfigurationError(
            f"{setting} is not a reference to an environment variable",
            hint="write $NAME and set the variable NAME; the secret itself must not be written"
            " here",
        )


def resolve_reference(setting: str, reference: str) -> str:
    """Return the value of the variable that a setting names."""
    name = reference.removeprefix("$")
    value = os.environ.get(name)
    if not value:
        raise ConfigurationError(
            f"{setting} refers to the environment variable {name}, which is not set",
            hint="set the variable in the environment of rag-assets (for the daemon, before"
            " `rag-assets up`), or remove the setting from tenants.yaml",
        )
    return value
