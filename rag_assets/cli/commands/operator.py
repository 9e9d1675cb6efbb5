"""The person who runs a command."""

from __future__ import annotations

import getpass
import os


def operator() -> str:
    """Who runs a command, as the operating system names them."""
    try:
        return f"operator {getpass.getuser()}"
    except (OSError, KeyError):
        return f"operator {os.getuid()}"
