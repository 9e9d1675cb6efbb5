"""Names as people write them: the keys by which routes, tables and settings are found."""

from __future__ import annotations

import re
from typing import Final

_PARAMETER: Final = re.compile(r"\{[^{}/]*\}|<[^<>/]*>|\(\?P<[^()/]*\)")
_VALUE: Final = re.compile(r"[0-9]+|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_METHODS: Final = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|ANY"
_METHOD: Final = re.compile(rf"({_METHODS})(?:\|(?:{_METHODS}))*(?:[ |]+|:(?=/)|$)", re.IGNORECASE)
_HOST: Final = re.compile(r"https?://[^/\s]*", re.IGNORECASE)
_NAME: Final = re.compile(r"[\w.:-]+")
_LONGEST: Final = 1_000
_MOST_PARTS: Final = 8


_SEPARATORS: Final = re.compile(r"::|->|[.#@\\/:]")
_NOT_FOLDED: Final = re.compile(r"[_\-$?!]+|(?<=\w)=$")


def folded_name(part: str) -> str:
    """Return a part of a name without case and underscores: `createFrom` is `create_from`."""
    return _NOT_FOLDED.sub("", part).lower()


def name_parts(said: str, *, folded: bool = True) -> tuple[str, ...]:
    r"""Return the parts of a name, split at the separators of any language.

    Args:
        said: `App\Invoice::total`, `Invoice.total`, `Invoice#total`, `total()`.
        folded: whether to return each part as folded_name does.
    """
    plain = said.strip()[:_LONGEST].removesuffix("()").strip("\\:.#@/$")
    parts = [part for part in _SEPARATORS.split(plain) if part]
    return tuple(map(folded_name, parts)) if folded else tuple(parts)


def path_template(path: str) -> str:
    """Return a path in lower case, with `{}` for each parameter and a slash only at the start."""
    bare = _PARAMETER.sub("{}", path).partition("?")[0]
    return "/" + "/".join(part for part in bare.split("/") if part).lower()


def requested_template(path: str) -> str:
    """Return the template of a requested path; parts that look like values become parameters."""
    parts = path_template(path).split("/")
    return "/".join("{}" if _VALUE.fullmatch(part) else part for part in parts)


def route_keys(methods: tuple[str, ...], uri: str, name: str) -> tuple[str, ...]:
    """Return the keys by which a route is found: its path, each method with the path, its name."""
    path = path_template(uri)
    named = (f"route {name.lower()}",) if name else ()
    return (f"route {path}", *(f"route {one.lower()} {path}" for one in methods), *named)


def table_keys(name: str) -> tuple[str, ...]:
    """Return the keys by which a table is found."""
    return (f"table {name.lower()}",)


def setting_keys(name: str) -> tuple[str, ...]:
    """Return the keys by which a setting can be found.

    Args:
        name: the name with its file, `billing.rates.de`, or without it.
    """
    parts = name.lower().split(".")[-_MOST_PARTS:]
    return tuple(f"setting {'.'.join(parts[at:])}" for at in range(len(parts)))


def request_of(said: str) -> tuple[str, str] | None:
    """Return the method ("" for any) and the path in a user's text; None if it is not a path.

    Args:
        said: `POST /invoices`, `invoices/42`, `https://shop.test/invoices`; of several methods, the
            first counts.
    """
    said = said.strip()[:_LONGEST].removeprefix("route:").lstrip()
    method = _METHOD.match(said)
    path = _HOST.sub("", said[method.end() :] if method else said, count=1)
    if not path.startswith("/"):
        if not path or any(one.isspace() for one in path) or not (method or "/" in path):
            return None
        path = f"/{path}"
    return (method[1].lower() if method else ""), path


def keys_of(said: str) -> tuple[str, ...]:
    """Return the keys of the routes, tables and settings that a user may mean by a name.

    Args:
        said: `invoices.store`, `/invoices/{invoice}`, `POST /invoices`, `/invoices/42/edit`, each
            path with a host or without its first slash, too; or a table's name.
    """
    said = said.strip()[:_LONGEST]
    asked = request_of(said)
    if asked is not None:
        method, path = asked
        before = f"{method} " if method else ""
        paths = (path_template(path), requested_template(path))
        return tuple(dict.fromkeys(f"route {before}{one}" for one in paths))
    if not _NAME.fullmatch(said):
        return ()
    settings = setting_keys(said) if "." in said else ()
    return f"route {said.lower()}", f"table {said.lower().removeprefix('table:')}", *settings
