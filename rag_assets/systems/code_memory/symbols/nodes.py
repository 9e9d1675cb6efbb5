"""Names of nodes: a qualified name, or a name with a prefix for its kind: `table:invoices`."""

from __future__ import annotations

import re
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
"""An ability that a gate defines by name: `ability:manage notes`."""

ENDPOINT: Final = "endpoint:"
EVENT: Final = "event:"
"""An event that is emitted and listened to by name: `event:checkout.order.save.after`."""

RUN: Final = "run:"
GROUP: Final = "group:"
"""A group of routes, named by the place of its statement: `group:routes/web.php:4`."""

MEMBER: Final = "member_of"
"""Kind of the edge from a method to its class."""

ASKS: Final = "asks"
"""Kind of the edge to the policy method that authorizes an action, if that policy exists."""

HANDS_ON: Final = "hands_on"
"""Kind of the edge from a re-exported name to its target."""

_MOST_NAMES: Final = 32_768
"""Maximum number of names with a cached short name."""

_SEPARATORS: Final = re.compile(r"::|[.#:]")


@lru_cache(_MOST_NAMES)
def short_name(name: str) -> str:
    """Return a qualified name in lower case without namespace or module; methods keep the class."""
    parts = _SEPARATORS.split(name.rpartition("\\")[2])
    # By convention, classes start with a capital in all of these languages, modules do not.
    kept = parts[-2:] if len(parts) > 1 and parts[-2][:1].isupper() else parts[-1:]
    return ".".join(kept).lower()


def endpoint_of(method: str, path: str) -> str:
    """Return the node of requests with a method to a path, regardless of parameter names."""
    return f"{method.upper()} {path_template(path)}"
