"""Fingerprints of the programs of background processes: of their code and environment.

A process keeps the code that it imported and the environment that it was started with. `up`
compares code and environment with its own, and restarts processes that differ.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final

from rag_assets.common.environment import variables_in_use
from rag_assets.common.hashing import key_of
from rag_assets.common.settings import PROJECT_ROOT, Settings
from rag_assets.forkserver.protocol import import_environment

_PACKAGE: Final = "rag_assets"
_LOCK: Final = Path("requirements", "lock.txt")
_OF_A_TERMINAL: Final = ("LC_", "LANG")
"""Prefixes of variables that differ between a terminal and a service but affect no result."""


def fingerprint_program(settings: Settings, root: Path = PROJECT_ROOT) -> str:
    """Return the fingerprint of the code on disk and of this process's environment.

    From the environment, it covers the settings, the variables that `tenants.yaml` names (such as
    keys of providers), and the variables that libraries read.

    Args:
        settings: settings of the installation.
        root: the folder of the package.
    """
    endpoints = settings.private_endpoints
    given = {field.name: str(getattr(settings, field.name)) for field in fields(settings)}
    given["private_endpoints"] = str(
        [
            sorted(map(str, endpoints.hosts)),
            endpoints.networks,
            sorted(endpoints.identity_hosts),
        ]
    )
    # Secrets are added separately: the text of the settings omits them, but a process keeps them as
    # well.
    given["elasticsearch"] = str(settings.elasticsearch.variables())
    code = [sys.executable, *_states_of_files(root)]
    return key_of("program", given, _environment(settings, os.environ), code)


def _environment(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    read_first = {
        name: value
        for name, value in import_environment(environment).items()
        if not name.startswith(_OF_A_TERMINAL)
    }
    return read_first | variables_in_use(settings, environment)


def _states_of_files(root: Path) -> Iterator[str]:
    """Yield path, modification time and size of each module and of the lock file."""
    modules = (
        Path(folder, name)
        for folder, _, names in os.walk(root / _PACKAGE, followlinks=True)
        for name in names
        if name.endswith(".py")
    )
    for path in sorted([*modules, root / _LOCK]):
        try:
            found = path.stat()
        except OSError:
            continue
        yield f"{path} {found.st_mtime_ns} {found.st_size}"
