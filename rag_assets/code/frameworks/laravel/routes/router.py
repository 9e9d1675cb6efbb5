"""Laravel's router without requests: groups, routes as they are added, and what changes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from rag_assets.code.frameworks.laravel.routes.groups import (
    Attributes,
    joined,
    listed_of,
    merged,
    trimmed,
)
from rag_assets.code.frameworks.laravel.routes.model import (
    ActionKind,
    Evidence,
    Parameter,
    Route,
)
from rag_assets.code.frameworks.laravel.routes.values import (
    Closure,
    Unknown,
    Value,
    is_list,
    text_of,
)

ANY: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_FIELD: Final = re.compile(r"\{(\w+):(\w+)(\??)\}")
_NAMED: Final = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Context:
    """What surrounds a statement that makes routes.

    Attributes:
        evidence: groups from the outermost on, last the statement.
        missing: what is computed or assumed of all of them.
        conditional: whether it stands under a condition.
    """

    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    conditional: bool = False


@dataclass(slots=True, eq=False)
class Draft:
    """A route that later calls may change.

    Attributes:
        uri: unknown where it is computed.
        methods: in order.
        action: its attributes; `uses` is what answers.
        context: see Context.
        wheres: regular expressions by parameter.
        fields: columns by parameter.
        kind, target: of a view or a redirect; "" for others.
        fallback: see Route.
    """

    uri: str | Unknown
    methods: list[str]
    action: Attributes
    context: Context
    wheres: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    kind: ActionKind | None = None
    target: str = ""
    fallback: bool = False
    missing: list[str] = field(default_factory=list)

    def name(self, value: Value) -> None:
        """Add to the name."""
        held = self.action.get("as")
        self.action["as"] = joined(value) if held is None else joined(held, value)

    def middleware(self, names: Iterable[Value], *, key: str = "middleware") -> None:
        """Add middleware, or middleware that is taken out."""
        self.action[key] = [*listed_of(self.action.get(key)), *names]

    def where(self, wheres: Mapping[Any, Value]) -> None:
        """Set regular expressions of parameters."""
        for name, pattern in wheres.items():
            text = text_of(pattern)
            if text is None:
                self.missing.append(f"the pattern of {name} is computed")
            self.wheres[str(name)] = text or ""

    def prefix(self, value: Value) -> None:
        """Set something before the URI."""
        uri = joined(trimmed_right(value), "/", trimmed_left(self.uri))
        self.set_uri(uri if uri == "/" else trimmed(uri))

    def domain(self, value: Value) -> None:
        """Set the domain."""
        self.action["domain"] = value

    def set_uri(self, uri: str | Unknown) -> None:
        """Set the URI, with the columns that it names."""
        self.fields = {}
        self.uri = uri
        if isinstance(uri, str):
            self.fields = {name: column for name, column, _ in _FIELD.findall(uri)}
            self.uri = _FIELD.sub(r"{\1\3}", uri)

    def route(self) -> Route:
        """The route as it is now; its URI is to be known."""
        missing = list(self.missing)
        domain = re.sub(r"https?://", "", _told(self.action, "domain", missing))
        domain, fields = _FIELD.sub(r"{\1\3}", domain), dict(self.fields)
        fields |= {name: column for name, column, _ in _FIELD.findall(_text(self.action, "domain"))}
        uri = self.uri if isinstance(self.uri, str) else ""
        name = _told(self.action, "as", missing)
        kind, action = self._action(missing)
        return Route(
            uri=uri,
            methods=tuple(self.methods),
            name=name,
            action=action,
            kind=kind,
            middleware=tuple(_middleware(self.action, "middleware", missing)),
            without_middleware=tuple(_middleware(self.action, "excluded_middleware", missing)),
            domain=domain,
            parameters=tuple(
                Parameter(
                    word.rstrip("?"),
                    word.endswith("?"),
                    fields.get(word.rstrip("?"), ""),
                    self.wheres.get(word.rstrip("?"), ""),
                )
                for word in _NAMED.findall(domain + uri)
            ),
            wheres=tuple(self.wheres.items()),
            fallback=self.fallback,
            conditional=self.context.conditional,
            missing=tuple(dict.fromkeys((*self.context.missing, *missing))),
            evidence=self.context.evidence,
        )

    def _action(self, missing: list[str]) -> tuple[ActionKind, str]:
        if self.kind is not None:
            return self.kind, self.target
        uses = self.action.get("uses")
        if isinstance(uses, str):
            return "controller", uses.lstrip("\\")
        if isinstance(uses, Closure):
            return "closure", "Closure"
        if uses is None:
            return "none", ""
        why = uses.why if isinstance(uses, Unknown) else "no action"
        missing.append(f"the action is computed: {why}")
        return "computed", ""


class Router:
    """The router.

    Attributes:
        patterns: regular expressions of parameters of all routes that follow.

    Args:
        is_class: whether a name is that of a class.
    """

    def __init__(self, is_class: Callable[[str], bool]) -> None:
        self.patterns: dict[str, Value] = {}
        self._is_class = is_class
        self._groups: list[Attributes] = []
        self._drafts: dict[str, Draft] = {}

    @property
    def drafts(self) -> Iterable[Draft]:
        """The routes; one that answers the same as a later one does is no more."""
        return self._drafts.values()

    @contextmanager
    def group(self, attributes: Mapping[str, Value]) -> Iterator[None]:
        """What is added within has the attributes of the group."""
        found = dict(attributes)
        if self._groups:
            found = merged(found, self._groups[-1], prepend=True)
        self._groups.append(found)
        try:
            yield
        finally:
            self._groups.pop()

    def add(self, methods: Iterable[str], uri: Value, action: Value, context: Context) -> Draft:
        """Add a route.

        Args:
            methods: in order, in any case.
            uri: below the prefixes of its groups.
            action: as it is given to the router: a text, an array, a closure, or null.
            context: see Context.
        """
        attributes = self._parsed(action)
        own = attributes.pop("prefix", None)
        last = self._last("prefix")
        full = trimmed(joined(trimmed(last), "/", trimmed(uri)))
        draft = Draft(full or "/", _methods(methods), attributes, context)
        draft.prefix(own)
        if self._groups:
            draft.action = merged(attributes, self._groups[-1], prepend=False)
        wheres = draft.action.get("where")
        draft.where({**self.patterns, **(wheres if isinstance(wheres, dict) else {})})
        domain = _text(draft.action, "domain")
        self._drafts[f"{draft.methods[-1:]}{domain}{draft.uri}"] = draft
        return draft

    def uses(self, draft: Draft, action: Value) -> None:
        """Set what answers a route that is there."""
        if is_list(action) and len(action) > 1:
            action = joined(action[0], "@", action[1])
        if isinstance(action, str):
            action = self._with_namespace(action)
        draft.action |= self._invokable({"uses": action})

    def _parsed(self, action: Value) -> Attributes:
        """An action as attributes, with the controller and the namespace of its group."""
        if isinstance(action, str):
            action = {"uses": action}
        if not isinstance(action, dict):
            return {"uses": action}
        if isinstance(action.get("uses"), str):
            named = self._with_namespace(self._with_controller(action["uses"]))
            return self._invokable({**_attributes(action), "uses": named})
        if 0 in action and 1 in action and isinstance(action[1], str):
            return {"uses": joined(action[0], "@", action[1])}
        found = _attributes(action)
        if "uses" not in found:
            closures = (value for value in action.values() if isinstance(value, Closure))
            found["uses"] = next(closures, None)
        elif is_list(found["uses"]) and len(found["uses"]) > 1:
            found["uses"] = joined(found["uses"][0], "@", found["uses"][1])
        return self._invokable(found)

    def _invokable(self, attributes: Attributes) -> Attributes:
        uses = attributes.get("uses")
        if isinstance(uses, str) and "@" not in uses and "::" not in uses:
            attributes["uses"] = f"{uses}@__invoke"
        return attributes

    def _with_controller(self, uses: str) -> Value:
        controller = self._last("controller")
        if controller is None or "@" in uses or self._is_class(uses.lstrip("\\")):
            return uses
        return joined(controller, "@", uses)

    def _with_namespace(self, uses: Value) -> Value:
        namespace = self._last("namespace")
        known = isinstance(uses, str)
        if namespace is None or (known and uses.startswith("\\")):
            return uses
        return joined(namespace, "\\", uses)

    def _last(self, name: str) -> Value:
        return self._groups[-1].get(name) if self._groups else None


def trimmed_left(value: Value) -> str | Unknown:
    """A text without slashes at its beginning."""
    text = joined(value)
    return text if isinstance(text, Unknown) else text.lstrip("/")


def trimmed_right(value: Value) -> str | Unknown:
    """A text without slashes at its end."""
    text = joined(value)
    return text if isinstance(text, Unknown) else text.rstrip("/")


def _attributes(action: Mapping[str | int, Value]) -> Attributes:
    return {key: value for key, value in action.items() if isinstance(key, str)}


def _methods(given: Iterable[str]) -> list[str]:
    found = [one.upper() for one in given]
    return [*found, "HEAD"] if "GET" in found and "HEAD" not in found else found


def _text(attributes: Attributes, name: str) -> str:
    value = attributes.get(name)
    return value if isinstance(value, str) else ""


def _told(attributes: Attributes, name: str, missing: list[str]) -> str:
    """An attribute's text; where it is computed, that is missing."""
    value = attributes.get(name)
    if isinstance(value, Unknown):
        missing.append(f"{_WORDS[name]} is computed: {value.why}")
    return value if isinstance(value, str) else ""


_WORDS: Final = {"as": "the name", "domain": "the domain"}


def _middleware(attributes: Attributes, name: str, missing: list[str]) -> Iterator[str]:
    for one in listed_of(attributes.get(name)):
        text = text_of(one)
        if text is None:
            why = one.why if isinstance(one, Unknown) else "no name"
            missing.append(f"a middleware is computed: {why}")
        elif text:
            yield text
