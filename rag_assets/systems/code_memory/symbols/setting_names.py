"""Names of settings, with their file (`config:billing.rates.de`), and their keys."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Final

from rag_assets.systems.code_memory.symbols.nodes import CONFIG

OWN_SETTING: Final = f"{CONFIG}."
"""Prefix of a setting's name in its own file."""

_FOLDER: Final = "config"
_MODULES: Final = frozenset({"settings", "config", "conf"})
"""Python modules with settings that are named by their keys alone."""


def setting_name(local: str, path: str) -> str:
    """Return the repository-wide name of a setting.

    Args:
        local: its keys, with dots; "" for the whole file.
        path: `config/billing.php`, `config/services/tax.php`, `shop/settings.py`.
    """
    bare, suffix = posixpath.splitext(path)
    *folders, last = bare.split("/")
    if suffix == ".py" and ("settings" in folders or last in _MODULES):
        place = ""
    elif suffix != ".py" and _FOLDER in folders:
        at = len(folders) - folders[::-1].index(_FOLDER)
        place = ".".join([*folders[at:], last])
    else:
        place = bare
    return CONFIG + ".".join(filter(None, (place, local)))


def local_settings(name: str) -> Iterator[str]:
    """Yield the names that a setting may have in its own file: its suffixes after each dot."""
    local = name.removeprefix(CONFIG)
    yield OWN_SETTING + local
    yield from (OWN_SETTING + local[found.end() :] for found in re.finditer(r"\.", local))
    yield OWN_SETTING
