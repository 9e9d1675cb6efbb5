"""Names of nodes, search keys of routes, tables and settings, and the spellings that users write.

The name of a node is a qualified name, or a name with a prefix for its kind: `table:invoices`. The
name of a setting consists of the path of its file and its keys. Laravel derives the name of a
policy from its model, so that one file is enough to name the policies that it checks.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import Final

from rag_assets.ingest.chunking.model import Fact

_PARAMETER: Final = re.compile(r"\{[^{}/]*\}|<[^<>/]*>|\(\?P<[^()/]*\)")
_VALUE: Final = re.compile(r"[0-9]+|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HTTP_METHODS: Final = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|ANY"
_METHOD: Final = re.compile(
    rf"({_HTTP_METHODS})(?:\|(?:{_HTTP_METHODS}))*(?:[ |]+|:(?=/)|$)", re.IGNORECASE
)
_HOST: Final = re.compile(r"https?://[^/\s]*", re.IGNORECASE)
_NAME: Final = re.compile(r"[\w.:-]+")
_MAX_PARTS: Final = 8
_MAX_PREFIXES: Final = 3
"""Maximum number of leading parts of a path that may be a server's prefix."""


_NAME_SEPARATORS: Final = re.compile(r"::|->|[.#@\\/:]")
_TYPE_ARGUMENTS: Final = re.compile(r"(?<=\w)(?<!operator)<[\w:&*][^<>()/{}]*>")
_MAX_TYPE_ARGUMENT_DEPTH: Final = 3
"""Maximum depth of type arguments within type arguments."""
_NOT_FOLDED: Final = re.compile(r"[_\-$?!]+|(?<=\w)=$")


def fold_name(part: str) -> str:
    """Return a part of a name in lower case without underscores: `createfrom` for `create_from`."""
    return _NOT_FOLDED.sub("", part).lower()


def remove_type_arguments(name: str) -> str:
    """Return a name without the type arguments of generics: `List::add` for `List<Key>::add`.

    The marks of operators, such as `operator<`, stay.
    """
    for _ in range(_MAX_TYPE_ARGUMENT_DEPTH if "<" in name else 0):
        name = _TYPE_ARGUMENTS.sub("", name)
    return name


def split_name(written: str, *, folded: bool = True) -> tuple[str, ...]:
    r"""Return the parts of a name, split at the separators of any language.

    Args:
        written: `App\Invoice::total`, `Invoice.total`, `Invoice#total`, `total()`.
        folded: whether to return each part as fold_name does.
    """
    plain = (
        remove_type_arguments(written.strip()[:_MAX_NAME_CHARACTERS])
        .removesuffix("()")
        .strip("\\:.#@/$")
    )
    parts = [part for part in _NAME_SEPARATORS.split(plain) if part]
    return tuple(map(fold_name, parts)) if folded else tuple(parts)


def format_path_template(path: str) -> str:
    """Return a path in lower case, `{}` for each parameter, without query and last slash."""
    bare = _PARAMETER.sub("{}", path).partition("?")[0]
    return "/" + "/".join(part for part in bare.split("/") if part).lower()


def format_requested_template(path: str) -> str:
    """Return the path template of a request: path parts that look like values become `{}`."""
    parts = format_path_template(path).split("/")
    return "/".join("{}" if _VALUE.fullmatch(part) else part for part in parts)


def iter_path_suffixes(path: str) -> Iterator[str]:
    """Yield the template of a path, and its suffixes that start with a literal part.

    A server may add a prefix to all its paths in settings that the code does not show, so that the
    path in the code is only a suffix of the requested path.
    """
    parts = format_path_template(path).split("/")[1:]
    for at in range(min(len(parts), _MAX_PREFIXES + 1)):
        if at == 0 or parts[at] != "{}":
            yield "/" + "/".join(parts[at:])


def list_route_keys(methods: tuple[str, ...], uri: str, name: str) -> tuple[str, ...]:
    """Return the search keys of a route: its path, each method with the path, and its name."""
    path = format_path_template(uri)
    name_keys = (f"route {name.lower()}",) if name else ()
    return (f"route {path}", *(f"route {method.lower()} {path}" for method in methods), *name_keys)


def list_described_route_keys(methods: tuple[str, ...], uri: str, name: str) -> tuple[str, ...]:
    """Return the search keys of a route from an API description.

    These are its path, all suffixes of the path, and its name: a server may serve the path with a
    different prefix.
    """
    keys = [key for end in iter_path_suffixes(uri) for key in list_route_keys(methods, end, "")]
    return (*dict.fromkeys([*keys, *list_route_keys((), uri, name)]),)


def list_table_keys(name: str) -> tuple[str, ...]:
    """Return the search keys of a table."""
    return (f"table {name.lower()}",)


def list_setting_keys(name: str) -> tuple[str, ...]:
    """Return the search keys of a setting: its name, and each shorter ending of the name."""
    parts = name.lower().split(".")[-_MAX_PARTS:]
    return tuple(f"setting {'.'.join(parts[at:])}" for at in range(len(parts)))


def parse_request(written: str) -> tuple[str, str] | None:
    """Return the method and path in a user's text; None if it is not a path.

    The method is "" if none is written.

    Args:
        written: `POST /invoices`, `invoices/42`, `https://shop.test/invoices`; the first of several
            methods counts.
    """
    written = written.strip()[:_MAX_NAME_CHARACTERS].removeprefix("route:").lstrip()
    method = _METHOD.match(written)
    path = _HOST.sub("", written[method.end() :] if method else written, count=1)
    if not path.startswith("/"):
        if not path or any(map(str.isspace, path)) or not (method or "/" in path):
            return None
        path = f"/{path}"
    return (method[1].lower() if method else ""), path


def list_search_keys(written: str) -> tuple[str, ...]:
    """Return the search keys of the routes, tables and settings that a user's text may mean.

    Args:
        written: `invoices.store`, `/invoices/{invoice}`, `POST /invoices`, `/invoices/42/edit`, or
            the name of a table; a path may have a host, or lack its first slash.
    """
    written = written.strip()[:_MAX_NAME_CHARACTERS]
    request = parse_request(written)
    if request is not None:
        method, path = request
        before = f"{method} " if method else ""
        paths = (format_path_template(path), format_requested_template(path))
        return tuple(dict.fromkeys(f"route {before}{template}" for template in paths))
    if not _NAME.fullmatch(written):
        return ()
    settings = list_setting_keys(written) if "." in written else ()
    return f"route {written.lower()}", f"table {written.lower().removeprefix('table:')}", *settings


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
"""Prefix of a group of routes, named by its file and line: `group:routes/web.php:4`."""

MEMBER: Final = "member_of"
"""Kind of the edge from a method to its class."""

ASKS: Final = "asks"
"""Kind of the edge to the policy method that authorizes an action, if such a policy exists."""

HANDS_ON: Final = "hands_on"
"""Kind of the edge from a re-exported name to its target."""

ELSEWHERE: Final = "elsewhere"
"""Kind of the edge from a use of a name of another package; its target is `elsewhere:` and the
name."""

OWN_SETTING_PREFIX: Final = f"{CONFIG}."
"""Prefix of the name of a setting that lacks the name of its settings file: `config:.vat`."""

_FOLDER: Final = "config"
_MODULES: Final = frozenset({"settings", "config", "conf"})
"""Python modules whose settings are named by their keys alone."""

_MAX_NAMES: Final = 32_768
"""Maximum number of names whose short names are cached."""

_SEPARATORS: Final = re.compile(r"::|[.#:]")


@lru_cache(_MAX_NAMES)
def get_short_name(name: str) -> str:
    """Return a name in lower case without namespace or module: `invoice.total` for a method."""
    parts = _SEPARATORS.split(name.rpartition("\\")[2])
    # By convention, names of classes start with a capital, and names of modules do not.
    kept_parts = parts[-2:] if len(parts) > 1 and parts[-2][:1].isupper() else parts[-1:]
    return ".".join(kept_parts).lower()


def format_endpoint(method: str, path: str) -> str:
    """Return the name of the node for requests to a path: `METHOD /path`, `{}` for parameters."""
    return f"{method.upper()} {format_path_template(path)}"


def build_setting_name(local: str, path: str) -> str:
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


def iter_setting_names_in_file(name: str) -> Iterator[str]:
    """Yield the names that a dotted setting may have inside its file.

    For `a.b.c`: all of it, `b.c` if the file is `a`, `c` if the file is `a/b`, and "" if the name
    is that of the file. Each starts with OWN_SETTING_PREFIX.
    """
    local = name.removeprefix(CONFIG)
    yield OWN_SETTING_PREFIX + local
    yield from (OWN_SETTING_PREFIX + local[dot.end() :] for dot in re.finditer(r"\.", local))
    yield OWN_SETTING_PREFIX


_QUOTES: Final = "`\"' \t\r\n"
_CALL: Final = re.compile(r"\([^()]*\)?$")
_RECEIVER: Final = re.compile(r"^\(\*?(\w+)\)")
_VARIABLE: Final = re.compile(r"^\$\w+(?:(?:\??->|::)\w+)*(?:\??->|::)(?=\w+$)")
_LINES: Final = re.compile(r":\d+(?:-\d+)?(?::\d+)?$")
_DRIVE: Final = re.compile(r"^[A-Za-z]:(?=[\\/])")
_MAX_FREE_PARTS: Final = 6
_MAX_FOLDERS: Final = 20
_MAX_NAME_CHARACTERS: Final = 1_000


def list_symbol_spellings(written: str) -> list[str]:
    r"""Return the indexed names that a user's text may mean, the written name first.

    Args:
        written: `Invoice::class`, `Invoice->total()`, `$invoice->total`, `App/Models/Invoice`,
            `invoice_line`.
    """
    written = written.strip()[:_MAX_NAME_CHARACTERS]
    bare = _RECEIVER.sub(r"\1", written.strip(_QUOTES))
    bare = _CALL.sub("", bare).replace("\\\\", "\\").removesuffix("::class")
    bare = _VARIABLE.sub("", bare).replace("?->", "->").replace("->", "::").lstrip("$")
    spellings = [written, bare]
    if "/" in bare and "." not in bare:
        spellings.append(bare.strip("/").replace("/", "\\"))
    joined = bare.replace("_", "").replace("-", "")
    return [spelling for spelling in dict.fromkeys([*spellings, joined]) if spelling]


def list_table_spellings(written: str) -> list[str]:
    """Return the table names that a user's text may mean: unquoted, with and without a schema."""
    bare = "".join(mark for mark in written.strip()[:_MAX_NAME_CHARACTERS] if mark not in "`\"'[]")
    bare = bare.removeprefix("table:")
    return [table for table in dict.fromkeys([bare, bare.rpartition(".")[2]]) if table]


def iter_route_spellings(written: str) -> Iterator[str]:
    """Yield the route templates that a requested path may match, fewest parameters first."""
    request = parse_request(written)
    if request is None:
        return
    method, path = request
    parts = format_requested_template(path).split("/")[1:]
    free = [at for at, part in enumerate(parts) if part and part != "{}"][-_MAX_FREE_PARTS:]
    for count in range(1, len(free) + 1):
        # The last parts of a path are most often parameters.
        for replaced_positions in combinations(reversed(free), count):
            template = "/".join(
                "{}" if at in replaced_positions else part for at, part in enumerate(parts)
            )
            yield f"{method} /{template}".lstrip()


def iter_route_endings(written: str) -> Iterator[str]:
    """Yield the endings of a requested path: the path in the code may lack a prefix.

    Each ending starts with the HTTP method, and is also yielded with `{}` as its last part.

    Args:
        written: a requested path, such as `GET /api/invoices/42`.
    """
    request = parse_request(written)
    if request is None:
        return
    method, path = request
    for end in [*iter_path_suffixes(format_requested_template(path))][1:]:
        before, _, last = end.rpartition("/")
        free = [f"{before}/{{}}"] if before and last != "{}" else []
        yield from (f"{method} {ending}".lstrip() for ending in (end, *free))


def list_path_spellings(written: str) -> list[str]:
    r"""Return the paths that a user's text may mean, the most exact first.

    Args:
        written: `./app/A.php`, `app\A.php`, `/srv/shop/app/A.php`, `app/A.php:12`.
    """
    bare = _DRIVE.sub("", _LINES.sub("", written.strip(_QUOTES)[:_MAX_NAME_CHARACTERS])).replace(
        "\\", "/"
    )
    parts = [part for part in bare.split("/") if part not in {"", ".", ".."}]
    # The first folders of an absolute path depend on the machine, so that all its ends are tried.
    ends = ["/".join(parts[at:]) for at in range(min(len(parts), _MAX_FOLDERS))]
    absolute = bare.startswith("/") or bool(_DRIVE.match(written.strip()))
    kept_ends = ends if absolute else ends[:1]
    return [path for path in dict.fromkeys([written, *kept_ends]) if path]


RESOURCE_ABILITIES: Final[Mapping[str, str]] = {
    "index": "viewAny",
    "show": "view",
    "create": "create",
    "store": "create",
    "edit": "update",
    "update": "update",
    "destroy": "delete",
}
"""The ability that Laravel checks for a controller method if the code names no ability.

This applies to `authorizeResource`, and to `authorize` with a model alone.
"""

_MODELS: Final = "Models"
_POLICIES: Final = "Policies"


def iter_usual_policies(model: str) -> Iterator[str]:
    """Yield the policy classes that a model usually has; Laravel tries these and others."""
    *places, short = model.split("\\")
    if _MODELS not in places:
        yield from iter_tried_policies(model)
        return
    at = places.index(_MODELS)
    root, inner = places[:at], places[at + 1 :]
    for place in dict.fromkeys((tuple(inner), ())):
        yield "\\".join((*root, _POLICIES, *place, f"{short}Policy"))


def iter_tried_policies(model: str) -> Iterator[str]:
    """Yield the classes that Laravel tries as a model's policy, in Laravel's order."""
    namespace, _, short = model.rpartition("\\")
    parts = namespace.split("\\") if namespace else []
    if f"\\{_MODELS}\\" in namespace:
        for place in (f"\\{_MODELS}\\{_POLICIES}\\", f"\\{_POLICIES}\\"):
            yield namespace.replace(f"\\{_MODELS}\\", place) + f"\\{short}Policy"
    for count in range(len(parts), 0, -1):
        yield "\\".join([*parts[:count], _POLICIES, f"{short}Policy"])


def get_authorizing_method(fact: Fact) -> str:
    """Return the method in which a check is made: as the fact names it, else its symbol."""
    method = fact.values.get("method")
    return f"{fact.symbol.partition('::')[0]}::{method}" if method else fact.symbol


def find_policy_method(fact: Fact) -> str:
    """Return the policy method that decides a fact `authorizes`; "" if it is unknown."""
    ability = str(fact.values.get("ability", ""))
    if ability:
        return get_method_of_ability(ability)
    method = fact.symbol.partition("::")[2]
    return RESOURCE_ABILITIES.get(method, method)


def get_method_of_ability(ability: str) -> str:
    """Return the policy method for an ability: `forceDelete` for `force-delete`."""
    first, *others = ability.replace("_", "-").split("-") if "-" in ability else [ability]
    return first + "".join(other[:1].upper() + other[1:] for other in others)
