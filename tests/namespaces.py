"""Programs in a new PID namespace, as in a container."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

_UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@functools.cache
def _is_possible() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(
    not _is_possible(), reason="only root may make PID namespaces here"
)


def start_in_namespace(
    program: str, *arguments: object, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a Python program in a new PID namespace, whose processes all end with it."""
    return start_command_in_namespace(
        [sys.executable, "-c", program, *map(str, arguments)], environment
    )


def start_command_in_namespace(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a command in a new PID namespace; see start_in_namespace."""
    return subprocess.Popen(
        [*_UNSHARE, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(environment or {})},
        text=True,
    )
