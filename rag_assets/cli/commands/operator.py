"""The person who runs a command."""

from __future__ import annotations

import getpass
import os


def operator() -> str:
    """Return the name of the person who runs a command, from the operating system."""
    try:
        return f"operator {getpass.getuser()}"
    except (OSError, KeyError):
        return f"operator {os.getuid()}"
