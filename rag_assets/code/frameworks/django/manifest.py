"""Whether a repository is Django's, by its manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REQUIREMENT: Final = re.compile(r"(?im)^[ \t]*[\"']?django[\"']?[ \t]*(?:$|[\[<>=!~;@,#\"'*(])")
_IN_LIST: Final = re.compile(
    r"(?i)[\"']django(?:\[[\w, -]{0,80}\])?[ \t]*(?:[<>=!~;@][^\"'\n]{0,200})?[\"']"
)
_SETTINGS: Final = re.compile(r"DJANGO_SETTINGS_MODULE|execute_from_command_line")
_LISTS: Final = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "pipfile", "environment.yml"})


def is_django(manifests: Mapping[str, str]) -> bool:
    """Whether a repository is Django's.

    Args:
        manifests: texts by path: `manage.py`, requirements files, `pyproject.toml`, `setup.py`,
            `setup.cfg`, `Pipfile`; others are passed over.
    """
    return any(_tells(path.lower(), text) for path, text in manifests.items())


def _tells(path: str, text: str) -> bool:
    name = path.rpartition("/")[2]
    if name == "manage.py":
        return _SETTINGS.search(text) is not None
    if name in _LISTS:
        return _IN_LIST.search(text) is not None or _REQUIREMENT.search(text) is not None
    if name.endswith((".txt", ".in")) and "require" in path:
        return _REQUIREMENT.search(text) is not None
    return False
