"""Names of nodes: a qualified name, or a name with a prefix for its kind: `table:invoices`.

The name of a setting follows from the path of its file and its keys.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from rag_assets.systems.code_memory.symbols.names import path_template

TABLE: Final = "table:"
CONFIG: Final = "config:"
ENV: Final = "env:"
PACKAGE: Final = "package:"
FILE: Final = "file:"
GLOB: Final = "glob:"
EVERY_FILE: Final = "**"
"""The glob of a rule that applies to all files."""

MIDDLEWARE: Final = "middleware:"
ABILITY: Final = "ability:"
"""Prefix of an ability that a gate defines by name: `ability:manage notes`."""

ENDPOINT: Final = "endpoint:"
EVENT: Final = "event:"
"""Prefix of a named event: `event:checkout.order.save.after`."""

RUN: Final = "run:"
GROUP: Final = "group:"
"""Prefix of a group of routes, named after its statement's place: `group:routes/web.php:4`."""

MEMBER: Final = "member_of"
"""Kind of the edge from a method to its class."""

ASKS: Final = "asks"
"""Kind of the edge to the policy method that authorizes an action, if such a policy exists."""

HANDS_ON: Final = "hands_on"
"""Kind of the edge from a re-exported name to its target."""

ELSEWHERE: Final = "elsewhere"
"""Kind of the edge from a use of a name that belongs to another package; its target is the prefix
`elsewhere:` and the name."""

OWN_SETTING: Final = f"{CONFIG}."
"""Prefix of a setting's name in its own file."""

_FOLDER: Final = "config"
_MODULES: Final = frozenset({"settings", "config", "conf"})
"""Python modules whose settings are named by their keys alone."""

_MOST_NAMES: Final = 32_768
"""Maximum number of names whose short names are cached."""

_SEPARATORS: Final = re.compile(r"::|[.#:]")


@lru_cache(_MOST_NAMES)
def short_name(name: str) -> str:
    """Return a name in lower case without namespace or module; methods keep their class."""
    parts = _SEPARATORS.split(name.rpartition("\\")[2])
    # In all of these languages, names of classes start with a capital by convention, modules do
    # not.
    kept = parts[-2:] if len(parts) > 1 and parts[-2][:1].isupper() else parts[-1:]
    return ".".join(kept).lower()


def endpoint_of(method: str, path: str) -> str:
    """Return the node for requests to a path with a method; parameter names do not matter."""
    return f"{method.upper()} {path_template(path)}"


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
    """Yield the names a setting may have in its own file: the parts of its name after each dot."""
    local = name.removeprefix(CONFIG)
    yield OWN_SETTING + local
    yield from (OWN_SETTING + local[found.end() :] for found in re.finditer(r"\.", local))
    yield OWN_SETTING
