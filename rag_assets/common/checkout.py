"""Detection of a checkout of the project; a checkout is the default home.

Only `os` is imported, because the command line calls this before it imports other modules.
"""

from __future__ import annotations

import os

_NAME = 'name = "rag-assets"'


def is_checkout(root: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a checkout of the project.

    A `pyproject.toml` alone does not prove it. Wheels of other projects put theirs into
    site-packages; every project created by `create-dagster` does so.
    """
    try:
        with open(os.path.join(root, "pyproject.toml"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            return any(line.rstrip() == _NAME for line in file)
    except (OSError, UnicodeDecodeError):
        return False
