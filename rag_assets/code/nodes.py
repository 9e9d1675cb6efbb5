"""Names of nodes: qualified, or with a prefix that says what else they are: `table:invoices`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from rag_assets.code.names import path_template

TABLE: Final = "table:"
CONFIG: Final = "config:"
ENV: Final = "env:"
PACKAGE: Final = "package:"
FILE: Final = "file:"
GLOB: Final = "glob:"
EVERY_FILE: Final = "**"
"""The glob of a rule that is for all files."""

MIDDLEWARE: Final = "middleware:"
ABILITY: Final = "ability:"
"""What a gate defines by name: `ability:manage notes`."""

ENDPOINT: Final = "endpoint:"
EVENT: Final = "event:"
"""What is emitted and listened to by name: `event:checkout.order.save.after`."""

RUN: Final = "run:"
GROUP: Final = "group:"
"""A group of routes, by the place of its statement: `group:routes/web.php:4`."""

MEMBER: Final = "member_of"
"""The kind of the edge from a method to its class."""

ASKS: Final = "asks"
"""The kind of the edge to a method that authorizes something, if there is a policy of that name."""

HANDS_ON: Final = "hands_on"
"""The kind of the edge from a name that a module hands on to what it stands for."""

_MOST_NAMES: Final = 32_768
"""Names whose short ones are kept."""

_SEPARATORS: Final = re.compile(r"::|[.#:]")


@lru_cache(_MOST_NAMES)
def short_name(name: str) -> str:
    """A qualified name without its namespace or module, in lower case; methods keep their class."""
    parts = _SEPARATORS.split(name.rpartition("\\")[2])
    # By convention, classes begin with a capital in all of these languages, and modules do not.
    kept = parts[-2:] if len(parts) > 1 and parts[-2][:1].isupper() else parts[-1:]
    return ".".join(kept).lower()


def endpoint_of(method: str, path: str) -> str:
    """What requests of a method to a path have in common, whatever its parameters are called."""
    return f"{method.upper()} {path_template(path)}"
