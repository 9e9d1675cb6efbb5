"""Arguments and options shared by several commands, such as the options of a search."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import typer

from rag_assets.common.errors import ConfigurationError

if TYPE_CHECKING:
    from rag_assets.cli.session import Session
    from rag_assets.search.model import Caller, Role
    from rag_assets.storage.catalog.accounts.credentials import KeyOwner
    from rag_assets.storage.catalog.tenants.settings import OrganizationRef

_T = TypeVar("_T")

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", help="Confirm the change.")]
ProviderArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="openai, gemini or openai-compatible.")
]
TenantArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="TENANT", help="Id of the tenant.")
]
ScopeArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="SCOPE", help="Access scope of documents.")
]
AsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="PRINCIPAL",
        help="Act as this user or group; repeat for several. By default only public documents.",
    ),
]
RoleOption: TypeAlias = Annotated[
    Literal["admin", "member", "guest", "orchestrator", "writer"] | None,
    typer.Option("--role", help="Role of the caller named by --as: by default member."),
]
PrincipalsArgument: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="PRINCIPAL...", help="User or group, as in requests."),
]

OrganizationArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ORGANIZATION", help="Id of the organization.")
]

OrganizationOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--organization",
        help="The id names an organization, for all its present and future tenants.",
    ),
]

ProjectArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="PROJECT", help="Id of the project in its application.")
]


def build_caller(principals: list[str] | None, role: Role | None) -> Caller:
    """Return the caller that the options `--as` and `--role` describe."""
    from rag_assets.search.model import Caller

    return Caller.acting(principals or (), role)


def _collect_search_fields(
    question: Annotated[str, typer.Argument(help="The question.")],
    top_k: Annotated[int | None, typer.Option(help="Maximum number of hits.")] = None,
    min_score: Annotated[float | None, typer.Option(help="Minimum cosine of a hit.")] = None,
    mode: Annotated[
        Literal["knn", "text", "hybrid"] | None, typer.Option(help="Vectors, words, or both.")
    ] = None,
    principal: AsOption = None,
    role: RoleOption = None,
    rerank: Annotated[
        bool | None, typer.Option(help="Rerank the top hits with a cross-encoder.")
    ] = None,
    document: Annotated[
        list[str] | None, typer.Option(help="Only the document with this id.")
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(help="Only documents below this path, such as source/folder."),
    ] = None,
    prefer: Annotated[
        list[str] | None, typer.Option(help="Rank documents below this path higher.")
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(metavar="PAGE", help="Workspaces: only this page and all below it."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only documents with this tag.")] = None,
    metadata: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only documents with this metadata."),
    ] = None,
    source_type: Annotated[
        list[str] | None, typer.Option(help="Only documents of this source type.")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="Only chunks in this language, such as de or python.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(help="Only content modified on or after this date or time.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="Only content modified before this date or time.")
    ] = None,
    token_budget: Annotated[
        int | None, typer.Option(help="Maximum number of tokens of all hits together.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Code memory: chat model that the hits are for.")
    ] = None,
    route: Annotated[
        str | None, typer.Option(help="Code memory: name or path of a route to start at.")
    ] = None,
    controller: Annotated[
        str | None, typer.Option(help="Code memory: a controller to start at.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Code memory: a table to start at.")] = None,
    runs: Annotated[
        bool, typer.Option(help="Code memory: changes and summaries of runs may be hits.")
    ] = True,
) -> dict[str, Any]:
    """Return the fields of a search request by name; None for an option that was not used."""
    return {
        "query": question,
        "top_k": top_k,
        "min_score": min_score,
        "mode": mode,
        "rerank": rerank,
        "token_budget": token_budget,
        "model": model,
        "route_name": route,
        "controller_class": controller,
        "table_name": table,
        "include_run_summaries": runs,
        "source_types": source_type,
        "must_include_paths": prefer,
        "filters": {
            "documents": document,
            "paths": path,
            "languages": language,
            "modified_after": after,
            "modified_before": before,
            "tags": tag,
            "metadata": _parse_metadata(metadata or ()),
            "within": within,
        },
        "caller": build_caller(principal, role),
    }


def _parse_metadata(arguments: Iterable[str]) -> dict[str, str]:
    pairs = [argument.partition("=") for argument in arguments]
    if not all(separator for _, separator, _ in pairs):
        raise typer.BadParameter("it must be KEY=VALUE", param_hint="'--metadata'")
    return {name: value for name, _, value in pairs}


def expand_parameter(
    build: Callable[..., Any], name: str
) -> Callable[[Callable[..., _T]], Callable[..., _T]]:
    """Return a decorator that replaces a parameter of a command with several options.

    Args:
        build: returns the value of the parameter; its own parameters become options.
        name: name of the parameter.
    """
    build_parameters = inspect.signature(build, eval_str=True).parameters

    def decorate(command: Callable[..., _T]) -> Callable[..., _T]:
        signature = inspect.signature(command, eval_str=True)

        @wraps(command)
        def run(**options: Any) -> _T:
            value = build(**{option: options.pop(option) for option in build_parameters})
            return command(**{name: value}, **options)

        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for key, original in signature.parameters.items()
            for parameter in (build_parameters.values() if key == name else (original,))
        ]
        # Typer reads the signature and the annotations.
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


search_options = expand_parameter(_collect_search_fields, "fields")
"""Replaces a command's parameter `fields` with the question and the options of a search."""


@dataclass(frozen=True, slots=True)
class NamedOwner:
    """The tenant or organization that the arguments of a command name.

    Attributes:
        id: id from the command line, which may be unknown to the catalog.
    """

    id: str
    is_organization: bool

    @property
    def kind(self) -> str:
        """Return "organization" or "tenant"."""
        return "organization" if self.is_organization else "tenant"

    @property
    def arguments(self) -> str:
        """Return the command-line arguments that name this tenant or organization."""
        return f"{self.id} --organization" if self.is_organization else self.id

    def find(self, session: Session) -> KeyOwner:
        """Find the tenant or organization in the catalog; return its TenantRef or OrganizationRef.

        Raises:
            UnknownTenant: the tenant does not exist.
            ConfigurationError: the organization does not exist.
        """
        if self.is_organization:
            return find_organization(session, self.id)
        return session.catalog.tenants.get(self.id).ref


def find_organization(session: Session, organization_id: str) -> OrganizationRef:
    """Return the OrganizationRef of an organization, which must exist in the catalog."""
    from rag_assets.storage.catalog.tenants.settings import OrganizationRef

    if session.catalog.organizations.find(organization_id) is None:
        raise ConfigurationError(
            f"there is no organization {organization_id!r}",
            hint=(
                "see the ids with `rag-assets organizations list`, or create it with "
                f"`rag-assets organizations put {organization_id}`"
            ),
        )
    return OrganizationRef(organization_id)


def _build_owner(
    owner_id: Annotated[
        str, typer.Argument(metavar="TENANT", help="Id of the tenant, or of the organization.")
    ],
    *,
    is_organization: OrganizationOption = False,
) -> NamedOwner:
    return NamedOwner(owner_id, is_organization)


owner_options = expand_parameter(_build_owner, "owner")
"""Replaces a command's parameter `owner` with a tenant's id and `--organization`."""
