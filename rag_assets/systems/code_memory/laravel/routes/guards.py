"""Names of middleware: what aliases and groups stand for, as kernels and applications state it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rag_assets.systems.code_memory.laravel.routes.frames import Arguments
from rag_assets.systems.code_memory.laravel.routes.stated import keyed
from rag_assets.systems.code_memory.laravel.routes.values import Value, listed

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
class Guards:
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
            self.groups[named] = listed(given.at(1, "middleware"))
        elif name == "pushmiddlewaretogroup":
            self.groups[named] = [*self.groups.get(named, []), given.at(1, "middleware")][:_MOST]
        elif name == "prependmiddlewaretogroup" and named in self.groups:
            self.groups[named] = [given.at(1, "middleware"), *self.groups[named]][:_MOST]

    def of_kernel(self, groups: Value, *aliases: Value) -> None:
        """Add the aliases and groups in a kernel's properties."""
        for held in aliases:
            self.aliases |= {str(name): one for name, one in keyed(held).items()}
        self.groups |= {str(name): listed(some) for name, some in keyed(groups).items()}

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
class Configuration:
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

    def applied_to(self, guards: Guards) -> None:
        """Apply all changes to the guards, in Laravel's order."""
        for kind in ("replace", "remove", "prepend", "append"):
            for _, group, names in (change for change in self.changes if change[0] == kind):
                held = self.groups.get(group, [])
                self.groups[group] = _unique(_CHANGES[kind](held, names))[:_MOST]
        guards.aliases |= self.aliases
        guards.groups |= self.groups

    def alias(self, given: Arguments) -> None:
        """Define aliases."""
        self.aliases |= {str(name): one for name, one in keyed(given.at(0, "aliases")).items()}

    def group(self, given: Arguments) -> None:
        """Define the members of a group."""
        self.groups[str(given.at(0, "group"))] = listed(given.at(1, "middleware"))

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
            pairs = ((str(old), new) for old, new in keyed(value).items())
            self.changes += [("replace", group, [old, new]) for old, new in pairs]
        elif listed(value):
            self.changes.append((kind, group, listed(value)))


def _changing(kind: str) -> Callable[[Configuration, Arguments], None]:
    return lambda own, given: own.change(kind, str(given.at(0, "group")), given.at(1, "middleware"))


_CONFIGURES: Final[Mapping[str, Callable[[Configuration, Arguments], None]]] = {
    "alias": Configuration.alias,
    "group": Configuration.group,
    "appendtogroup": _changing("append"),
    "prependtogroup": _changing("prepend"),
    "removefromgroup": _changing("remove"),
    "replaceingroup": Configuration.replace,
    "statefulapi": Configuration.stateful,
    "throttleapi": Configuration.throttled,
    "authenticatesessions": Configuration.sessions,
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
