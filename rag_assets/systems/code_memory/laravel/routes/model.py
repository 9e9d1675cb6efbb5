"""Routes as Laravel's router stores them, with evidence and unresolved statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rag_assets.ingest.chunking.model import Fact

ActionKind: TypeAlias = Literal["controller", "closure", "view", "redirect", "none", "computed"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in a repository that supports a statement.

    Attributes:
        path: the path of the file.
        fact: the statement's fact; that of a group ends where its body starts.
    """

    path: str
    fact: Fact


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


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A statement that may add or change routes but could not be resolved from the code.

    Attributes:
        reason: the reason, in a few words.
        evidence: the place of the statement.
    """

    reason: str
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a route.

    Attributes:
        name: the name as in the URI.
        optional: whether the URI is valid without it.
        field: the column that it is looked up by; "" for the model's own key.
        pattern: a regular expression that it must match; "" if absent.
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
        methods: the methods, in the router's order; GET implies HEAD.
        name: prefixed with the names of its groups; "" if it has none.
        action: `App\\Http\\Controllers\\InvoiceController@show`; `Closure`; a view's name, or the
            target of a redirect; "" if it is computed.
        kind: the kind of the action.
        middleware: the middleware, in order, as written; middleware of groups first.
        without_middleware: excluded middleware.
        domain: "" for every domain.
        parameters: the parameters of domain and URI, in order.
        wheres: regular expressions of parameters.
        fallback: whether it answers requests that no other route matches.
        conditional: whether it depends on a condition that is evaluated at run time.
        missing: computed or assumed parts, which may be wrong or incomplete.
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
    parameters: tuple[Parameter, ...]
    wheres: tuple[tuple[str, str], ...]
    fallback: bool
    conditional: bool
    missing: tuple[str, ...]
    evidence: tuple[Evidence, ...]

    @property
    def complete(self) -> bool:
        """Return whether the code determines all parts of the route."""
        return not self.missing and not self.conditional


@dataclass(frozen=True, slots=True)
class Routes:
    """The routes of a repository.

    Attributes:
        routes: the routes, in the router's order.
        unresolved: statements that may add or change routes but could not be resolved.
    """

    routes: tuple[Route, ...]
    unresolved: tuple[Unresolved, ...]

    @property
    def complete(self) -> bool:
        """Return whether all statements are resolved."""
        return not self.unresolved
