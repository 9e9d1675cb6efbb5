"""Routes in the form that Django's resolver gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_assets.systems.code_memory.django.modules import Evidence, Unresolved


@dataclass(frozen=True, slots=True)
class Route:
    """A route.

    Attributes:
        uri: path template (`invoices/{pk}/`).
        pattern: the pattern as Django writes it: the concatenation of all its parts.
        name: the name with its namespaces (`billing:invoice`); "" if it has none.
        view: absolute name of its function or class; "" if it is computed.
        actions: methods of the view by HTTP method, if a viewset or a class defines them.
        methods: HTTP methods in upper case; empty if they are unknown.
        parameters: names with their converters, or regular expressions.
        evidence: the include statements, outermost first, then its own.
        suffixed: whether it only adds a format suffix (`users.json`) to another route.
        conditional: whether it depends on a condition that is evaluated at run time.
        handlers: absolute names of the methods that run, by action; without methods of classes from
            packages.
    """

    uri: str
    pattern: str
    name: str
    view: str
    actions: tuple[tuple[str, str], ...]
    methods: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]
    evidence: tuple[Evidence, ...]
    suffixed: bool = False
    conditional: bool = False
    handlers: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes of a repository.

    Attributes:
        routes: the routes, in the resolver's order.
        unresolved: statements that may add or change routes but could not be resolved.
    """

    routes: tuple[Route, ...]
    unresolved: tuple[Unresolved, ...]
