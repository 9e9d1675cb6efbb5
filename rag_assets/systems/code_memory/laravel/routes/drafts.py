"""Routes as added to the router, while later statements may still change them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rag_assets.systems.code_memory.laravel.routes.groups import (
    Attributes,
    joined,
    listed_of,
    trimmed,
)
from rag_assets.systems.code_memory.laravel.routes.model import (
    ActionKind,
    Evidence,
    Parameter,
    Route,
)
from rag_assets.systems.code_memory.laravel.routes.values import (
    Closure,
    Unknown,
    Value,
    few,
    text_of,
)

_FIELD: Final = re.compile(r"\{(\w+):(\w+)(\??)\}")
_NAMED: Final = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a statement that creates routes.

    Attributes:
        evidence: the enclosing groups, outermost first, then the statement.
        missing: computed or assumed parts that concern all routes of the statement.
        conditional: whether the statement is under a condition.
    """

    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    conditional: bool = False


@dataclass(slots=True, eq=False)
class Draft:
    """A route that later calls may change.

    Attributes:
        uri: the URI; unknown if it is computed.
        methods: the methods, in order.
        action: its attributes; `uses` is the handler.
        context: see Context.
        wheres: regular expressions, by parameter.
        fields: columns, by parameter.
        kind, target: kind and target of a view or a redirect; None and "" for others.
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
        """Append a text to the name."""
        held = self.action.get("as")
        self.action["as"] = joined(value) if held is None else joined(held, value)

    def middleware(self, names: Iterable[Value], *, key: str = "middleware") -> None:
        """Add middleware; with another key, add excluded middleware."""
        self.action[key] = few([*listed_of(self.action.get(key)), *names])

    def where(self, wheres: Mapping[Any, Value]) -> None:
        """Set the regular expressions that parameters must match."""
        for name, pattern in wheres.items():
            text = text_of(pattern)
            if text is None:
                self.missing.append(f"the pattern of {name} is computed")
            self.wheres[str(name)] = text or ""

    def prefix(self, value: Value) -> None:
        """Prepend a prefix to the URI."""
        uri = joined(trimmed_right(value), "/", trimmed_left(self.uri))
        self.set_uri(uri if uri == "/" else trimmed(uri))

    def domain(self, value: Value) -> None:
        """Set the domain."""
        self.action["domain"] = value

    def set_uri(self, uri: str | Unknown) -> None:
        """Set the URI, and the columns that its parameters name."""
        self.fields = {}
        self.uri = uri
        if isinstance(uri, str):
            self.fields = {name: column for name, column, _ in _FIELD.findall(uri)}
            self.uri = _FIELD.sub(r"{\1\3}", uri)

    def route(self) -> Route:
        """Return the route in its current state; its URI must be known."""
        missing = list(self.missing)
        domain = re.sub(r"https?://", "", _told(self.action, "domain", missing))
        domain, fields = _FIELD.sub(r"{\1\3}", domain), dict(self.fields)
        fields |= {
            name: column for name, column, _ in _FIELD.findall(text_at(self.action, "domain"))
        }
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


def trimmed_left(value: Value) -> str | Unknown:
    """Return a text without leading slashes."""
    text = joined(value)
    return text if isinstance(text, Unknown) else text.lstrip("/")


def trimmed_right(value: Value) -> str | Unknown:
    """Return a text without trailing slashes."""
    text = joined(value)
    return text if isinstance(text, Unknown) else text.rstrip("/")


def text_at(attributes: Attributes, name: str) -> str:
    """Return an attribute if it is a text, or else ""."""
    value = attributes.get(name)
    return value if isinstance(value, str) else ""


def _told(attributes: Attributes, name: str, missing: list[str]) -> str:
    """Return an attribute's text; if it is computed, add it to `missing`."""
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
