"""Detection of a checkout of the project, which is then the default home.

Only `os` is imported: the command line asks before it imports other modules.
"""

from __future__ import annotations

import os

_NAME = 'name = "rag-assets"'


def is_checkout(root: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a checkout of the project.

    A `pyproject.toml` alone does not prove it: wheels of other projects put theirs into
    site-packages, as every project that `create-dagster` makes does.
    """
    try:
        with open(os.path.join(root, "pyproject.toml"), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            return any(line.rstrip() == _NAME for line in file)
    except (OSError, UnicodeDecodeError):
        return False
