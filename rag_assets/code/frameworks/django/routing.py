"""Routes, as Django's resolver knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rag_assets.code.frameworks.django.modules import Evidence, Unresolved


@dataclass(frozen=True, slots=True)
class Route:
    """A route.

    Attributes:
        uri: path template (`invoices/{pk}/`).
        pattern: as Django writes it: all its parts, one after the other.
        name: with its namespaces (`billing:invoice`); "" for none.
        view: absolute name of its function or class; "" where it is computed.
        actions: methods of the view by HTTP method, where a viewset or a class tells them.
        methods: HTTP methods in upper case; empty where they are not known.
        parameters: names with their converters, or regular expressions.
        evidence: the include statements from the outermost on, then its own.
        suffixed: whether it only adds the suffix of a format (`users.json`) to another route.
        conditional: whether it stands under a condition that only running the program would tell.
        handlers: absolute names of the methods that run, by action; without those that classes of
            a package bring.
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
        routes: in the resolver's order.
        unresolved: what may add routes, or change them, that are not here.
    """

    routes: tuple[Route, ...]
    unresolved: tuple[Unresolved, ...]
