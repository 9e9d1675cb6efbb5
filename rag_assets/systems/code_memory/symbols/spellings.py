"""Converts names of symbols, tables, routes and files as users write them to names in the index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

from rag_assets.systems.code_memory.symbols.names import request_of, requested_template

_QUOTES: Final = "`\"' \t\r\n"
_CALL: Final = re.compile(r"\([^()]*\)?$")
_RECEIVER: Final = re.compile(r"^\(\*?(\w+)\)")
_VARIABLE: Final = re.compile(r"^\$\w+(?:(?:\??->|::)\w+)*(?:\??->|::)(?=\w+$)")
_LINES: Final = re.compile(r":\d+(?:-\d+)?(?::\d+)?$")
_DRIVE: Final = re.compile(r"^[A-Za-z]:(?=[\\/])")
_MOST_PARTS: Final = 6
_MOST_FOLDERS: Final = 20
_LONGEST: Final = 1_000


def symbol_spellings(said: str) -> list[str]:
    r"""Return the names in the index that a user may mean by a definition; as written comes first.

    Args:
        said: `Invoice::class`, `Invoice->total()`, `$invoice->total`, `App/Models/Invoice`,
            `invoice_line`.
    """
    said = said.strip()[:_LONGEST]
    bare = _RECEIVER.sub(r"\1", said.strip(_QUOTES))
    bare = _CALL.sub("", bare).replace("\\\\", "\\").removesuffix("::class")
    bare = _VARIABLE.sub("", bare).replace("?->", "->").replace("->", "::").lstrip("$")
    found = [said, bare]
    if "/" in bare and "." not in bare:
        found.append(bare.strip("/").replace("/", "\\"))
    joined = bare.replace("_", "").replace("-", "")
    return [one for one in dict.fromkeys([*found, joined]) if one]


def table_spellings(said: str) -> list[str]:
    """Return the tables that a user may mean: without quotation marks, or without the schema."""
    bare = "".join(one for one in said.strip()[:_LONGEST] if one not in "`\"'[]")
    bare = bare.removeprefix("table:")
    return [one for one in dict.fromkeys([bare, bare.rpartition(".")[2]]) if one]


def route_spellings(said: str) -> Iterator[str]:
    """Yield the templates that a path may match, those with the fewest parameters first.

    Args:
        said: a requested path, `/invoices/pdf/a1b2`, with or without its method.
    """
    asked = request_of(said)
    if asked is None:
        return
    method, path = asked
    parts = requested_template(path).split("/")[1:]
    free = [at for at, part in enumerate(parts) if part and part != "{}"][-_MOST_PARTS:]
    for count in range(1, len(free) + 1):
        # The last parts of a path are most often parameters.
        for chosen in combinations(reversed(free), count):
            template = "/".join("{}" if at in chosen else part for at, part in enumerate(parts))
            yield f"{method} /{template}".lstrip()


def path_spellings(said: str) -> list[str]:
    r"""Return the paths that a user may mean, the most exact first.

    Args:
        said: `./app/A.php`, `app\A.php`, `/srv/shop/app/A.php`, `app/A.php:12`.
    """
    bare = _DRIVE.sub("", _LINES.sub("", said.strip(_QUOTES)[:_LONGEST])).replace("\\", "/")
    parts = [part for part in bare.split("/") if part not in {"", ".", ".."}]
    # The first folders of an absolute path depend on the machine, so every suffix of it is tried.
    ends = ["/".join(parts[at:]) for at in range(min(len(parts), _MOST_FOLDERS))]
    absolute = bare.startswith("/") or bool(_DRIVE.match(said.strip()))
    kept = ends if absolute else ends[:1]
    return [one for one in dict.fromkeys([said, *kept]) if one]
