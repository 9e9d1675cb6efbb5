"""Commands for projects, which are tenants that applications create, and for organizations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from rag_assets.cli.arguments import Json, OrganizationArgument, ProjectArgument, YesOption
from rag_assets.cli.output import print_json, print_table, say
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError

if TYPE_CHECKING:
    from rag_assets.pipeline.tenancy import Projects
    from rag_assets.storage.catalog.tenants.settings import Organization
    from rag_assets.storage.catalog.tenants.table import TenantRecord
    from rag_assets.tenants.projects import Project, ProjectSettings

ProfileOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Profile of the project's tenant; by default the profile of projects over the API."
    ),
]

app = typer.Typer()
organizations_app = typer.Typer()


@app.command("list")
@with_reading_session
def list_projects(
    session: Session,
    organization: Annotated[
        str | None, typer.Argument(metavar="[ORGANIZATION]", help="Id of the organization.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List the projects with their tenants and settings."""
    table = session.catalog.projects
    records = table.all() if organization is None else table.list_of_organization(organization)
    rows = [_describe_project(session, record) for record in records]
    if as_json:
        print_json({"projects": rows})
        return
    names = ("organization", "project", "tenant", "state", "origin", "name", "embedder", "key")
    print_table(list(names), [tuple(row[name] or "" for name in names) for row in rows])
    if not rows:
        say("\nCreate one with: rag-assets projects put ORGANIZATION PROJECT")


@app.command("put")
@with_session
def put_project(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    name: Annotated[str | None, typer.Option(help="Display name.")] = None,
    chat_model: Annotated[str | None, typer.Option(help="Name of the chat model.")] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            help="Provider of embeddings: auto, openai, gemini, or local, which needs no key."
        ),
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(help="Cosine below which a passage is left out.")
    ] = None,
    threshold_from: Annotated[
        str | None,
        typer.Option(help="Origin of the threshold: measured, or a description."),
    ] = None,
    per_day: Annotated[float | None, typer.Option(help="Spending cap per day, in dollars.")] = None,
    per_month: Annotated[
        float | None, typer.Option(help="Spending cap per month, in dollars.")
    ] = None,
    *,
    reset: Annotated[
        bool,
        typer.Option(
            "--anew/--no-anew",
            help="Reset all settings except caps and chat model to `projects` in tenants.yaml.",
        ),
    ] = False,
    profile: ProfileOption = None,
    as_json: Json = False,
) -> None:
    """Create a project, or change its settings."""
    caps = {"per_day": per_day, "per_month": per_month}
    given_settings = {
        "name": name,
        "chat_model": chat_model,
        "provider": provider,
        "min_score": min_score,
        "threshold_from": threshold_from,
        "caps": {of: cap for of, cap in caps.items() if cap is not None} or None,
    }
    settings = {name: value for name, value in given_settings.items() if value is not None}
    chosen_project = _choose_project(profile, organization, project)
    _require_creatable(chosen_project.profile)
    result = _open_projects(session).put(chosen_project, _parse_settings(settings), reset=reset)
    shown_project = {
        **_describe_project(session, result.record),
        "created": result.created,
        "changed": result.changed,
    }
    if as_json:
        print_json(shown_project)
        return
    outcome = "created" if result.created else "changed" if result.changed else "unchanged"
    say(f"Project {project} of {organization} is {outcome}: tenant {result.record.id}.")
    if shown_project["key"] == "missing":
        embedder_provider = shown_project["embedder_provider"]
        say(f"It has no key: rag-assets keys set {result.record.id} {embedder_provider}")


@app.command("remove")
@with_session
def remove_project(
    session: Session,
    organization: OrganizationArgument,
    project: ProjectArgument,
    *,
    confirmed: YesOption = False,
    profile: ProfileOption = None,
    as_json: Json = False,
) -> None:
    """Delete a project's tenant and everything indexed for it."""
    from rag_assets.cli import tenants

    record = _open_projects(session).get(_choose_project(profile, organization, project))
    tenants.remove(record.id, confirmed=confirmed, as_json=as_json)


@organizations_app.command("list")
@with_reading_session
def list_organizations(session: Session, *, as_json: Json = False) -> None:
    """List the organizations with their settings."""
    counts = Counter(record.organization for record in session.catalog.projects.all())
    rows = [
        (organization_row, counts[organization_row.id])
        for organization_row in session.catalog.organizations.all()
    ]
    if as_json:
        shown_organizations = [
            {**_to_json(organization_row), "projects": count} for organization_row, count in rows
        ]
        print_json({"organizations": shown_organizations})
        return
    print_table(
        ["organization", "guidelines", "chat model", "projects", "changed"],
        [
            (*_build_row(organization_row)[:3], count, _build_row(organization_row)[3])
            for organization_row, count in rows
        ],
    )


@organizations_app.command("put")
@with_session
def put_organization(
    session: Session,
    organization_id: Annotated[
        str, typer.Argument(metavar="ORGANIZATION", help="Id of the organization.")
    ],
    *,
    guidelines: Annotated[
        bool | None,
        typer.Option(
            "--guidelines/--no-guidelines",
            help="Whether documents are embedded and searched for its guidelines.",
        ),
    ] = None,
    chat_model: Annotated[
        str | None,
        typer.Option(help="Chat model of its projects without their own; '' removes it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create an organization, or change its settings."""
    from rag_assets.storage.catalog.tenants.settings import UNCHANGED

    organization = _open_projects(session).put_organization(
        organization_id,
        has_opted_in=UNCHANGED if guidelines is None else guidelines,
        chat_model=UNCHANGED if chat_model is None else chat_model or None,
    )
    if as_json:
        print_json(_to_json(organization))
        return
    _, switched, model, _ = _build_row(organization)
    say(f"Organization {organization_id}: guidelines {switched}, chat model {model or 'none'}.")


def _open_projects(session: Session) -> Projects:
    from rag_assets.pipeline.tenancy import Projects

    return Projects(session.catalog, session.settings)


def _choose_project(profile: str | None, organization: str, project: str) -> Project:
    from rag_assets.tenants.profiles import get_profile
    from rag_assets.tenants.projects import Project

    profile = profile or _find_default_profile()
    if not get_profile(profile).requires_project:
        raise ConfigurationError(
            f"tenants of the profile {profile!r} are not projects",
            hint="add the tenant with `rag-assets tenants add`",
        )
    return Project(profile, organization, project)


def _find_default_profile() -> str:
    """Return the first profile with projects that applications create over the API."""
    from rag_assets.plugins.registry import installed_systems

    for name, profile in installed_systems().profiles.items():
        if profile.projects_over_api:
            return name
    raise ConfigurationError(
        "no installed system lets applications create projects over the API",
        hint="choose a profile with --profile",
    )


def _require_creatable(profile: str) -> None:
    from rag_assets.tenants.profiles import get_profile

    if not get_profile(profile).projects_over_api:
        raise ConfigurationError(
            f"projects of the profile {profile!r} cannot be created with this command",
            hint="add the tenant with `rag-assets tenants add`, or in tenants.yaml",
        )


def _parse_settings(given_settings: Mapping[str, Any]) -> ProjectSettings:
    from pydantic import ValidationError

    from rag_assets.common.invalid_values import describe_first_problem
    from rag_assets.tenants.projects import ProjectSettings

    try:
        return ProjectSettings.model_validate(given_settings)
    except ValidationError as error:
        raise ConfigurationError(
            describe_first_problem(error), hint="see `rag-assets projects put --help`"
        ) from None


def _describe_project(session: Session, record: TenantRecord) -> dict[str, Any]:
    from rag_assets.models.factory import get_embedder_id
    from rag_assets.tenants.model import Tenant
    from rag_assets.tenants.projects import list_effective_settings

    choice = session.embedders.choice(record)
    return {
        "organization": record.organization,
        "project": record.project,
        "tenant": record.id,
        "state": record.state,
        "origin": record.origin,
        **list_effective_settings(Tenant.from_config(record.config)),
        "embedder": get_embedder_id(choice.embedder),
        "embedder_provider": choice.embedder.provider,
        "key": choice.key,
    }


def _to_json(organization: Organization) -> dict[str, Any]:
    return {
        "id": organization.id,
        "rag_guidelines": organization.has_opted_in,
        "chat_model": organization.chat_model,
        "updated_at": organization.updated_at,
    }


def _build_row(organization: Organization) -> tuple[str, str, str, str]:
    return (
        organization.id,
        "on" if organization.has_opted_in else "off",
        organization.chat_model or "",
        f"{organization.updated_at:%Y-%m-%d %H:%M} UTC",
    )
