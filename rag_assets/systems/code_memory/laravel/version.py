"""The version of Laravel that a repository requires."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Final

from rag_assets.systems.code_memory.symbols.model import FileFacts

_FRAMEWORK: Final = "laravel/framework"
_VERSION: Final = re.compile(r"\d{1,3}")


def framework_version(files: Iterable[FileFacts]) -> int | None:
    """Return the major version that a manifest requires; None if no manifest states it.

    Args:
        files: the files of the repository.
    """
    for one in files:
        if one.language == "php" or posixpath.basename(one.path) != "composer.json":
            continue
        for fact in one.facts:
            if fact.kind == "depends_on" and fact.values.get("package") == _FRAMEWORK:
                told = _VERSION.search(str(fact.values.get("constraint", "")))
                if told is not None:
                    return int(told[0])
    return None
