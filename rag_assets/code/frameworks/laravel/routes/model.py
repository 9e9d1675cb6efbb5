"""Routes, as Laravel's router knows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rag_assets.code.model import Fact

ActionKind: TypeAlias = Literal["controller", "closure", "view", "redirect", "none", "computed"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a repository says something.

    Attributes:
        path: of the file.
        fact: the statement's; a group's ends where its body begins.
    """

    path: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Something that may add routes, or change them, and that the text alone does not tell.

    Attributes:
        reason: why, in a few words.
        evidence: where it is written.
    """

    reason: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a route.

    Attributes:
        name: as the URI has it.
        optional: whether the URI is valid without it.
        field: the column that it is looked up by; "" for the model's own key.
        pattern: a regular expression that it has to match; "" for none.
    """

    name: str
    optional: bool = False
    field: str = ""
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    r"""A route.

    Attributes:
        uri: without a slash at its ends (`invoices/{invoice}`); "/" for the root.
        methods: in the router's order; GET brings HEAD.
        name: with the names of its groups before it; "" for none.
        action: `App\\Http\\Controllers\\InvoiceController@show`; `Closure`; a view's name, or where
            a redirect leads to; "" where it is computed.
        kind: what the action is.
        middleware: in order, as it is written, those of groups first.
        without_middleware: what is taken out of it.
        domain: "" for every domain.
        parameters: of domain and URI, in order.
        wheres: regular expressions of parameters.
        fallback: whether it answers where no other route does.
        conditional: whether it stands under a condition that only running the program would tell.
        missing: what of it is computed or assumed, and so may differ or lack.
        evidence: from the outermost group on, last its own statement.
    """

    uri: str
    methods: tuple[str, ...]
    name: str
    action: str
    kind: ActionKind
    middleware: tuple[str, ...]
    without_middleware: tuple[str, ...]
    domain: str
    parameters: tuple[Parameter, ...]
    wheres: tuple[tuple[str, str], ...]
    fallback: bool
    conditional: bool
    missing: tuple[str, ...]
    evidence: tuple[Evidence, ...]

    @property
    def complete(self) -> bool:
        """Whether the text tells all of it."""
        return not self.missing and not self.conditional


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes of a repository.

    Attributes:
        routes: in the router's order.
        unresolved: what may add routes, or change them, that are not here.
    """

    routes: tuple[Route, ...]
    unresolved: tuple[Unresolved, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing of them is unresolved."""
        return not self.unresolved
