"""Middleware: the classes that names stand for, and the middleware that controllers state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.php.calls import Call, Chain, arguments_of
from rag_assets.systems.code_memory.languages.php.classes import ClassLike, Method
from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.laravel.routes.values import (
    Arguments,
    Value,
    as_array,
    list_values,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_ROUTING: Final = "Illuminate\\Routing\\Middleware\\"
_AUTH: Final = "Illuminate\\Auth\\Middleware\\"
_ALIASES: Final[Mapping[str, str]] = {
    "auth": f"{_AUTH}Authenticate",
    "auth.basic": f"{_AUTH}AuthenticateWithBasicAuth",
    "auth.session": "Illuminate\\Session\\Middleware\\AuthenticateSession",
    "cache.headers": "Illuminate\\Http\\Middleware\\SetCacheHeaders",
    "can": f"{_AUTH}Authorize",
    "guest": f"{_AUTH}RedirectIfAuthenticated",
    "password.confirm": f"{_AUTH}RequirePassword",
    "precognitive": "Illuminate\\Foundation\\Http\\Middleware\\HandlePrecognitiveRequests",
    "signed": f"{_ROUTING}ValidateSignature",
    "throttle": f"{_ROUTING}ThrottleRequests",
    "verified": f"{_AUTH}EnsureEmailIsVerified",
}
_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "web": (
        "Illuminate\\Cookie\\Middleware\\EncryptCookies",
        "Illuminate\\Cookie\\Middleware\\AddQueuedCookiesToResponse",
        "Illuminate\\Session\\Middleware\\StartSession",
        "Illuminate\\View\\Middleware\\ShareErrorsFromSession",
        "Illuminate\\Foundation\\Http\\Middleware\\ValidateCsrfToken",
        f"{_ROUTING}SubstituteBindings",
    ),
    "api": (f"{_ROUTING}SubstituteBindings",),
}
_STATEFUL: Final = "Laravel\\Sanctum\\Http\\Middleware\\EnsureFrontendRequestsAreStateful"
_MOST: Final = 1_000


@dataclass(slots=True)
class MiddlewareNames:
    """Aliases and groups of middleware.

    Attributes:
        aliases: target of each alias.
        groups: members of each group.
    """

    aliases: dict[str, Value] = field(default_factory=dict)
    groups: dict[str, list[Value]] = field(default_factory=dict)

    def of_router(self, name: str, given: Arguments) -> None:
        """Apply a call on the router that defines an alias or a group of middleware.

        Args:
            name: the name of the call, in lower case.
        """
        named = str(given.at(0))
        if name == "aliasmiddleware":
            self.aliases[named] = given.at(1, "class")
        elif name == "middlewaregroup":
            self.groups[named] = list_values(given.at(1, "middleware"))
        elif name == "pushmiddlewaretogroup":
            self.groups[named] = [*self.groups.get(named, []), given.at(1, "middleware")][:_MOST]
        elif name == "prependmiddlewaretogroup" and named in self.groups:
            self.groups[named] = [given.at(1, "middleware"), *self.groups[named]][:_MOST]

    def of_kernel(self, groups: Value, *aliases: Value) -> None:
        """Add the aliases and groups in a kernel's properties."""
        for held in aliases:
            self.aliases |= {str(name): one for name, one in as_array(held).items()}
        self.groups |= {str(name): list_values(some) for name, some in as_array(groups).items()}

    def classes(self) -> dict[str, tuple[str, ...]]:
        """Return the middleware classes that each alias and group stands for, in order."""
        names = dict.fromkeys((*self.aliases, *self.groups))
        found = {name: tuple(dict.fromkeys(self._of(name))) for name in names}
        return {name: classes for name, classes in found.items() if classes}

    def _of(self, name: str) -> Iterator[str]:
        todo, seen = [name], set[str]()
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            if at in self.groups or at in self.aliases:
                told = self.groups[at] if at in self.groups else [self.aliases[at]]
                names = (one.partition(":")[0] for one in told if isinstance(one, str))
                todo += reversed([one.lstrip("\\") for one in names])
            elif "\\" in at:
                yield at


@dataclass(slots=True)
class MiddlewareConfiguration:
    """The arguments of `withMiddleware` of Laravel 11 and later, until they are applied.

    Attributes:
        aliases: the aliases of middleware.
        groups: Laravel's default groups, and others.
        changes: changes of groups (kind, group, middleware); they are applied by kind.
    """

    aliases: dict[str, Value] = field(default_factory=lambda: dict(_ALIASES))
    groups: dict[str, list[Value]] = field(
        default_factory=lambda: {name: list(some) for name, some in _GROUPS.items()}
    )
    changes: list[tuple[str, str, list[Value]]] = field(default_factory=list)

    def call(self, name: str, given: Arguments) -> None:
        """Apply a call on the configuration.

        Args:
            name: the name of the call, in lower case.
        """
        made = _CONFIGURES.get(name)
        if made is not None:
            made(self, given)
        elif name in {"web", "api"}:
            for position, kind in enumerate(("append", "prepend", "remove", "replace")):
                self.change(kind, name, given.at(position, kind))

    def applied_to(self, guards: MiddlewareNames) -> None:
        """Apply all changes to the guards, in Laravel's order."""
        for kind in ("replace", "remove", "prepend", "append"):
            for _, group, names in (change for change in self.changes if change[0] == kind):
                held = self.groups.get(group, [])
                self.groups[group] = _unique(_CHANGES[kind](held, names))[:_MOST]
        guards.aliases |= self.aliases
        guards.groups |= self.groups

    def alias(self, given: Arguments) -> None:
        """Define aliases."""
        self.aliases |= {str(name): one for name, one in as_array(given.at(0, "aliases")).items()}

    def group(self, given: Arguments) -> None:
        """Define the members of a group."""
        self.groups[str(given.at(0, "group"))] = list_values(given.at(1, "middleware"))

    def stateful(self, _given: Arguments) -> None:
        """Enable sessions for the API."""
        self.groups["api"] = [_STATEFUL, *self.groups["api"]]

    def throttled(self, given: Arguments) -> None:
        """Limit the rate of API requests."""
        limiter = given.at(0, "limiter", "api")
        at = 1 if _STATEFUL in self.groups["api"] else 0
        self.groups["api"].insert(at, f"throttle:{limiter}")

    def sessions(self, _given: Arguments) -> None:
        """Add the middleware that checks the password hash of sessions."""
        self.groups["web"] = [*self.groups["web"], "auth.session"]

    def replace(self, given: Arguments) -> None:
        """Replace one middleware in a group."""
        changed = [given.at(1, "search"), given.at(2, "replace")]
        self.changes.append(("replace", str(given.at(0, "group")), changed))

    def change(self, kind: str, group: str, value: Value) -> None:
        """Record a change of a group; to replace, `value` maps old to new middleware."""
        if kind == "replace":
            pairs = ((str(old), new) for old, new in as_array(value).items())
            self.changes += [("replace", group, [old, new]) for old, new in pairs]
        elif list_values(value):
            self.changes.append((kind, group, list_values(value)))


def _changing(kind: str) -> Callable[[MiddlewareConfiguration, Arguments], None]:
    return lambda own, given: own.change(kind, str(given.at(0, "group")), given.at(1, "middleware"))


_CONFIGURES: Final[Mapping[str, Callable[[MiddlewareConfiguration, Arguments], None]]] = {
    "alias": MiddlewareConfiguration.alias,
    "group": MiddlewareConfiguration.group,
    "appendtogroup": _changing("append"),
    "prependtogroup": _changing("prepend"),
    "removefromgroup": _changing("remove"),
    "replaceingroup": MiddlewareConfiguration.replace,
    "statefulapi": MiddlewareConfiguration.stateful,
    "throttleapi": MiddlewareConfiguration.throttled,
    "authenticatesessions": MiddlewareConfiguration.sessions,
}

_CHANGES: Final[Mapping[str, Callable[[list[Value], list[Value]], list[Value]]]] = {
    "replace": lambda held, pair: [pair[1] if one == pair[0] else one for one in held],
    "remove": lambda held, names: [one for one in held if one not in names],
    "prepend": lambda held, names: [*names, *held],
    "append": lambda held, names: [*held, *names],
}


def _unique(values: Iterable[Value]) -> list[Value]:
    """Return each name once; computed names are left out."""
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


_MIDDLEWARE: Final = "Illuminate\\Routing\\Controllers\\Middleware"
_STATING: Final = frozenset({"member_call_expression"})
_RETURNS: Final = frozenset({"return_statement"})
_LISTS: Final = frozenset({"array_element_initializer"})


@dataclass(frozen=True, slots=True)
class _Guards:
    """Middleware, the methods that it is limited to, and the methods that it excludes."""

    names: Sequence[str]
    only: Sequence[str]
    without: Sequence[str]
    node: Node


def guard_facts(source: PhpSource) -> Iterator[Fact]:
    """Yield the facts of the controllers in a file."""
    if "iddleware" not in source.text:
        return
    for one in source.classes:
        constructor, stating = one.method("__construct"), one.method("middleware")
        found: list[_Guards] = []
        if constructor is not None:
            found += _of_constructor(source, constructor)
        if stating is not None and stating.static and not stating.parameters:
            found += _of_list(source, stating)
        for guards in found:
            yield from _facts(source, one, guards)


def _facts(source: PhpSource, one: ClassLike, guards: _Guards) -> Iterator[Fact]:
    own = [m.name for m in one.methods if m.public and not m.static and m.name[:2] != "__"]
    left_out = {name.lower() for name in guards.without}
    methods = list(guards.only)
    if left_out:
        methods = [name for name in methods or own if name.lower() not in left_out]
        if not methods:
            return
    for name in guards.names:
        alias = name.partition(":")[0].lstrip("\\")
        if alias:
            span = source.tree.start(guards.node), source.tree.end(guards.node)
            yield Fact("guards", *span, one.name, {"name": alias, "methods": methods})


def _of_constructor(source: PhpSource, method: Method) -> Iterator[_Guards]:
    """Yield middleware from calls such as `$this->middleware('auth')->only('store')`."""
    if method.body is None:
        return
    known: set[int] = set()
    for node in source.tree.nodes(_STATING, method.body):
        chain = None if node.id in known else source.chain(node)
        if chain is None:
            continue
        known.update(call.node.id for call in chain.calls)
        if chain.root == "$this" and chain.calls[0].name.lower() == "middleware":
            names = _texts(source, chain.calls[0].argument(0, "middleware"))
            only, without = (_options(source, chain, name) for name in ("only", "except"))
            yield _Guards(names, only, without, node)


def _options(source: PhpSource, chain: Chain, name: str) -> list[str]:
    call = chain.call(name)
    if call is None:
        return []
    return [text for one in call.arguments for text in _texts(source, one.value)]


def _of_list(source: PhpSource, method: Method) -> Iterator[_Guards]:
    """Yield middleware in a returned list: names, or `new Middleware('auth', only: ['store'])`."""
    if method.body is None:
        return
    returned = source.tree.nodes(_RETURNS, method.body)
    listed = returned[0].named_children[:1] if len(returned) == 1 else ()
    for array in listed:
        for entry in array.named_children if array.type == "array_creation_expression" else ():
            if entry.type in _LISTS and len(entry.named_children) == 1:
                yield from _of_entry(source, entry.named_children[0])


def _of_entry(source: PhpSource, node: Node) -> Iterator[_Guards]:
    if node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    if node.type != "object_creation_expression":
        yield _Guards(_texts(source, node), (), (), node)
        return
    written = source.tree.of(node.named_children[0]) if node.named_children else ""
    if not written or source.class_name(written, node) != _MIDDLEWARE:
        return
    made = Call("", arguments_of(source.tree, node), node)
    yield _Guards(
        _texts(source, made.argument(0, "middleware")),
        _texts(source, made.argument(1, "only")),
        _texts(source, made.argument(2, "except")),
        node,
    )


def _texts(source: PhpSource, node: Node | None) -> list[str]:
    """Return the texts in an expression, which may be a list; computed texts are left out."""
    value = source.value(node) if node is not None else None
    listed = value if isinstance(value, list) else [value]
    return [one for one in listed if isinstance(one, str)]
