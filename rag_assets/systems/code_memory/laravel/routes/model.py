"""Routes as Laravel's router stores them, and the values that the evaluation works on.

A PHP array is represented by a dict with strings and integers as keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal, TypeAlias

from rag_assets.ingest.chunking.model import Fact

ActionKind: TypeAlias = Literal["controller", "closure", "view", "redirect", "none", "computed"]


@dataclass(frozen=True, slots=True)
class LocatedFact:
    """A fact with the path of its file, as evidence of a statement.

    The fact of a group ends where its body starts.
    """

    path: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class StatementContext:
    """The context of a statement that creates routes.

    Attributes:
        evidence: the enclosing groups, outermost first, then the statement.
        missing: computed or assumed parts that concern all routes of the statement.
    """

    evidence: tuple[LocatedFact, ...] = ()
    missing: tuple[str, ...] = ()
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class UnresolvedRouting:
    """A statement that may add or change routes, with the reason why it was not resolved."""

    reason: str
    evidence: LocatedFact


@dataclass(frozen=True, slots=True)
class RouteParameter:
    """A parameter of a route.

    Attributes:
        optional: whether the URI is valid without it.
        field: the column that it is looked up by; "" for the model's own key.
        pattern: a regular expression that it must match; "" if absent.
    """

    name: str
    optional: bool = False
    field: str = ""
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class LaravelRoute:
    r"""A route of Laravel's router.

    Attributes:
        uri: without a slash at its ends (`invoices/{invoice}`); "/" for the root.
        name: prefixed with the names of its groups; "" if it has none.
        action: `App\\Http\\Controllers\\InvoiceController@show`; `Closure`; a view's name, or the
            target of a redirect; "" if it is computed.
        fallback: whether it answers requests that no other route matches.
        conditional: whether it depends on a condition that is evaluated at run time.
        missing: descriptions of computed or assumed parts, which may be wrong or incomplete.
        evidence: groups, outermost first, then its own statement.
    """

    uri: str
    methods: tuple[str, ...]
    name: str
    action: str
    kind: ActionKind
    middleware: tuple[str, ...]
    without_middleware: tuple[str, ...]
    domain: str
    parameters: tuple[RouteParameter, ...]
    wheres: tuple[tuple[str, str], ...]
    fallback: bool
    conditional: bool
    missing: tuple[str, ...]
    evidence: tuple[LocatedFact, ...]


@dataclass(frozen=True, slots=True)
class LaravelRoutes:
    """The routes of a repository in the router's order, and the statements left unresolved."""

    routes: tuple[LaravelRoute, ...]
    unresolved: tuple[UnresolvedRouting, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is known only at run time.

    Attributes:
        why: what computes it, as part of a message: `config()`.
        rest: the known part of a string.
    """

    why: str
    rest: str = ""


class RouterValue:
    """The type of ROUTER, which represents the router as a value."""


ROUTER: Final = RouterValue()


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a class; its state is not tracked."""

    name: str


@dataclass(frozen=True, slots=True)
class StatementBlock:
    """A body of statements in a file.

    Attributes:
        symbol: the function or method that contains it; "" for top-level code.
        block: number of the body within that function; 0 for the function's own body.
    """

    path: str
    symbol: str
    block: int


@dataclass(frozen=True, slots=True)
class ClosureValue:
    """A closure as a value.

    Attributes:
        body: its statements; None if they cannot create routes.
        variables: the variables at the point where it was written, with their values.
    """

    body: StatementBlock | None
    parameters: tuple[Mapping[str, Any], ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict, hash=False)
    this: Any = None


Value: TypeAlias = Any
PhpArray: TypeAlias = dict[str | int, Value]

MAX_VALUE_SIZE: Final = 2_000
"""Maximum characters of a text, and elements of an array; a larger value counts as unknown."""

_MAX_LISTED_VALUES: Final = 100
_INTEGER_LIMIT: Final = 1 << 63
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")


def limit_size(value: Value) -> Value:
    """Return a value; Unknown if it has more than MAX_VALUE_SIZE characters or elements."""
    if isinstance(value, str | dict) and len(value) > MAX_VALUE_SIZE:
        return Unknown("a long text" if isinstance(value, str) else "a long array")
    return value


def limit_count(values: Iterable[Value]) -> list[Value]:
    """Return the first 100 values; no real route has more middleware."""
    return list(islice(values, _MAX_LISTED_VALUES))


def make_array(values: Iterable[Value]) -> dict[str | int, Value]:
    """Return a PHP array of these values with the keys 0, 1, 2 …."""
    return dict(enumerate(values))


def list_values(value: Value) -> list[Value]:
    """Return the values of an array; a single value as a list; an empty list for null."""
    if isinstance(value, dict):
        return list(value.values())
    return [] if value is None else [value]


def is_list(value: Value) -> bool:
    """Return whether the keys of an array are 0, 1, 2 … in order."""
    return isinstance(value, dict) and list(value) == list(range(len(value)))


def to_array_key(value: Value) -> str | int | None:
    """Return the key that PHP would use for a value in an array; None if it cannot be a key."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return int(value) if _INTEGER.fullmatch(value) else value
    if isinstance(value, int | float):
        return int(value) if math.isfinite(value) else 0
    return "" if value is None else None


def to_text(value: Value) -> str | None:
    """Return the string that PHP converts a value to; None if it is unknown."""
    if value is None or value is False:
        return ""
    if value is True:
        return "1"
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    if isinstance(value, int) and abs(value) > _INTEGER_LIMIT:
        return None
    return str(value) if isinstance(value, str | int | float) else None


def to_bool(value: Value) -> bool | None:
    """Return whether a value is truthy in PHP; None if it is unknown."""
    if isinstance(value, Unknown):
        return None
    return value not in (None, False, 0, 0.0, "", "0", {})


Attributes: TypeAlias = dict[str, Value]

_MERGED_SEPARATELY: Final = frozenset({"namespace", "prefix", "where", "as"})
_LISTS: Final = frozenset({"middleware", "excluded_middleware", "can"})


def join_texts(*parts: Value) -> str | Unknown:
    """Return the concatenation of strings; Unknown if a part is unknown."""
    texts: list[str] = []
    why = ""
    for part in parts:
        text = part.rest if isinstance(part, Unknown) else to_text(part)
        if isinstance(part, Unknown) or text is None:
            why = why or (part.why if isinstance(part, Unknown) else "no text")
        texts.append(text or "")
    text = limit_size("".join(texts))
    if isinstance(text, Unknown):
        return text
    return Unknown(why, text) if why else str(text)


def trim_text(
    value: Value, characters: str = "/", strip: Callable[[str, str], str] = str.strip
) -> str | Unknown:
    """Return a string without these characters at its ends; Unknown stays Unknown."""
    text = join_texts(value)
    return text if isinstance(text, Unknown) else strip(text, characters)


def merge_attributes(
    new: Mapping[str, Value], old: Mapping[str, Value], *, prepend: bool
) -> Attributes:
    """Return the attributes of a group or route merged with the enclosing group's attributes.

    Args:
        new: attributes of the inner group or route.
        old: attributes of the outer group.
        prepend: whether the outer prefix comes first; for routes it comes last.
    """
    outer = {key: value for key, value in old.items() if key not in _MERGED_SEPARATELY}
    for name in ("domain", "controller"):
        if new.get(name) is not None:
            outer.pop(name, None)
    inner = dict(new)
    if old.get("as") is not None:
        inner["as"] = join_texts(old["as"], new.get("as"))
    inner["namespace"] = _merge_namespace(new.get("namespace"), old.get("namespace"))
    inner["prefix"] = _merge_prefix(new.get("prefix"), old.get("prefix"), outer_comes_first=prepend)
    inner["where"] = {**as_array(old.get("where")), **as_array(new.get("where"))}
    merged = {**outer, **inner}
    for name in _LISTS:
        merged[name] = limit_count(
            [*list_middleware(outer.get(name)), *list_middleware(inner.get(name))]
        )
    return merged


def list_middleware(value: Value) -> list[Value]:
    """Return the middleware in an attribute of a group or route as a list."""
    return value if isinstance(value, list) else list_values(value)


def _merge_namespace(new: Value, old: Value) -> Value:
    text = join_texts(new)
    if new is None or isinstance(text, Unknown):
        return old if new is None else text
    if old is None or text.startswith("\\"):
        return text.strip("\\")
    return join_texts(trim_text(old, "\\"), "\\", text.strip("\\"))


def _merge_prefix(new: Value, old: Value, *, outer_comes_first: bool) -> Value:
    if new is None:
        return "" if old is None else old
    first, last = (old, new) if outer_comes_first else (new, old)
    return join_texts(trim_text(first), "/", trim_text(last))


MAX_BODY_DEPTH: Final = 40
"""Maximum depth of nested bodies, that is, of groups, files and functions."""

MAX_STEPS: Final = 2_000_000
"""Maximum number of expressions evaluated for one repository; each pass through a loop counts."""

MAX_PROVIDER_STEPS: Final = 500_000
"""Maximum number of expressions evaluated for one provider."""

MAX_CALLS: Final = 500
"""Maximum number of calls in one chain."""


class Exhausted(Exception):
    """The evaluation has used up its limit of steps."""


@dataclass(slots=True)
class CallFrame:
    """The state of one call of a function or closure, or of one evaluation of a file.

    Attributes:
        path, symbol: the file and the function that are evaluated; "" for top-level code.
        context: the context of the current statement.
        assumed: assumptions behind the values of variables, by name of the variable.
    """

    path: str
    symbol: str = ""
    this: Value = None
    variables: dict[str, Value] = field(default_factory=dict)
    context: StatementContext = StatementContext()
    depth: int = 0
    assumed: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def get_block(self, number: int) -> StatementBlock:
        """Return a block of the file or function that is evaluated."""
        return StatementBlock(self.path, self.symbol, number)

    @property
    def owner(self) -> str:
        """Return the class whose method is evaluated; "" for a function or a file."""
        owner, separator, _ = self.symbol.partition("::")
        return owner if separator else ""


@dataclass(frozen=True, slots=True)
class Registrar:
    """Attributes for the next group or route, like Laravel's RouteRegistrar."""

    attributes: Attributes = field(hash=False)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The evaluated arguments of a call."""

    positional: Sequence[Value] = ()
    named: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def get(self, position: int, name: str = "", default: Value = None) -> Value:
        """Return an argument by its name, or else by its position; `default` if it is missing."""
        if name in self.named:
            return self.named[name]
        return self.positional[position] if position < len(self.positional) else default

    @property
    def all(self) -> tuple[Value, ...]:
        """Return the values of all arguments, positional arguments first."""
        return (*self.positional, *self.named.values())


_CONSTRAINTS: Final = {
    "wherealpha": "[a-zA-Z]+",
    "wherealphanumeric": "[a-zA-Z0-9]+",
    "wherenumber": "[0-9]+",
    "whereulid": "[0-7][0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{25}",
    "whereuuid": "[\\da-fA-F]{8}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{12}",
}
CONSTRAINTS: Final = frozenset({"where", "setwheres", "wherein", *_CONSTRAINTS})
"""Calls that constrain parameters, in lower case."""


def read_constraints(name: str, arguments: Arguments) -> dict[str | int, Value]:
    """Return the regular expressions that a call of CONSTRAINTS sets, by route parameter."""
    first, second = arguments.get(0), arguments.get(1)
    if name in {"where", "setwheres"}:
        return first if isinstance(first, dict) else {str(first): second}
    if name == "wherein":
        texts = [to_text(value) for value in list_values(second)]
        pattern: Value = Unknown("a list") if None in texts else "|".join(map(str, texts))
    else:
        pattern = _CONSTRAINTS[name]
    return {str(value): pattern for value in list_values(first)}


def read_names(arguments: Arguments) -> list[Value]:
    """Return names of middleware that are passed as a list or as separate arguments."""
    first = arguments.get(0)
    return list_values(first) if isinstance(first, dict) else list(arguments.all)


def read_ability(arguments: Arguments) -> Value:
    """Return the middleware that the call `can` adds: `can:update,post`."""
    models = list_values(arguments.get(1, "models"))
    parts = [part for model in models for part in (",", model)]
    return join_texts("can:", arguments.get(0, "ability"), *parts)


def as_array(value: Value) -> dict[str | int, Value]:
    """Return the value if it is an array; for anything else, an empty array."""
    return value if isinstance(value, dict) else {}
