"""The description of a system: the parts that it adds to the pipeline, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rag_assets.common.errors import ConfigurationError

Reference: TypeAlias = str
"""An object's location as "package.module:attribute"; it is imported on first use."""

Parts: TypeAlias = Mapping[str, Reference]
"""Parts of one kind by name. Two systems must not use the same name for a kind."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The defaults and rules for the tenants of a system.

    Attributes:
        defaults: configuration as in tenants.yaml; a tenant's own settings override it.
        thresholds: the cosine below which a hit is left out, by `provider/model` of the embedder.
            Cosines of different embedders are not comparable. An embedder that is not listed has no
            threshold; then the ranking alone decides.
        thresholds_of_uses: thresholds that replace `thresholds` in searches for one purpose, by the
            name of the purpose (the `use` of a search request).
        calibrates: the `provider/model` of embedders whose threshold comes from their description,
            not from a measurement. The first questions measure it against random passages
            (rag_assets/search/scoring.py), with that threshold as the upper bound, unless
            the tenant sets `retrieval.threshold_from: as described`.
        asked_by: the token roles that may ask questions of its tenants and read their documents;
            empty: any role.
        retrieval_steps: names of the steps of a search, in order; empty for the standard steps.
        requires_project: whether each of its tenants is one project of an organization.
            Applications create these projects and address them by organization and project.
        projects_over_api: whether applications create such projects, with `projects` in
            tenants.yaml as the initial configuration; otherwise operators add each tenant.
        share_of_window: largest share of a chat model's context window that hits may fill; None: no
            limit.
        sources_of_all: sources that each tenant has in addition to its own, as in tenants.yaml.
        sources_beside: functions that take the configuration of a source of files, and return the
            configuration of an additional source that each tenant gets for it.
        tells_readers_alone: whether only the readers of a document can learn that it exists: no
            event reports it to the tenant's admins, and counts for anybody else omit it.
        repeats_texts: whether a text that several documents contain is one hit for each document;
            otherwise it is one hit that names the others.
        keeps_passages: whether each passage is a separate hit, ordered by score; otherwise
            adjoining passages are one hit, and near copies share a position.
        most_hits: maximum number of hits, even if a search requests more; None: no maximum.
        typed_records: whether records that are pushed to its tenants have the bodies of
            rag_assets.ingest.sources.record_bodies.
        keeps_model: whether another embedding model takes effect only when a tenant is fully
            indexed again; the former embeddings answer until then.
        drops_described_secrets: whether passages that match a few patterns of credentials
            (privacy/described.py) are dropped as well, regardless of the other rules.
        opt_in_problem: the error class, a subclass of `NotOptedIn`, for requests for a tenant until
            its organization opts in; until then none of its texts is embedded. None: no opt-in is
            needed.
    """

    defaults: Mapping[str, Any]
    thresholds: Mapping[str, float] = field(default_factory=dict)
    thresholds_of_uses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    calibrates: frozenset[str] = frozenset()
    asked_by: frozenset[str] = frozenset()
    retrieval_steps: tuple[str, ...] = ()
    requires_project: bool = False
    projects_over_api: bool = False
    share_of_window: float | None = None
    sources_of_all: tuple[Mapping[str, Any], ...] = ()
    sources_beside: tuple[Reference, ...] = ()
    opt_in_problem: str | None = None
    tells_readers_alone: bool = False
    repeats_texts: bool = False
    keeps_passages: bool = False
    most_hits: int | None = None
    typed_records: bool = False
    keeps_model: bool = False
    drops_described_secrets: bool = False

    def threshold(self, embedder_id: str, use: str | None = None) -> float | None:
        """Return the cosine below which a hit is left out; None for no threshold.

        Args:
            embedder_id: the embedder of the vectors; the id starts with
                `provider/model@dimensions`.
            use: the use of the hits that the search request names; None if it names none.
        """
        thresholds = self.thresholds_of_uses.get(use or "", self.thresholds)
        return thresholds.get(embedder_id.partition("@")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrations:
    """The migrations that create and upgrade a system's tables.

    Attributes:
        package: contains one Alembic migration per module; the history starts with the first.
        head: the newest revision. It is compared with the database before Alembic is imported.
    """

    package: str
    head: str


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A system: everything that it adds to the pipeline.

    Every process creates it when the registry is read. It contains only names, numbers and
    references to objects ("package.module:attribute"), and its module imports nothing heavy.

    Attributes:
        name: the name of the system, of its entry point and of its tenants' profile.
        profile: the defaults of its tenants; None if it only adds parts for other profiles.
        source_kinds: `SourceKind` by the `type` in tenants.yaml.
        chunkers: `ChunkerKind` by the name in tenants.yaml.
        tables: its tables in the catalog's schema by name: SQLAlchemy's `Table`, in the catalog's
            metadata.
        migrations: create and upgrade these tables.
        service_rights: by table, the rights of the service's role, for tables in which requests
            must not do all of these: add, change and delete rows
            (storage/catalog/installation/roles.py).
        follow_up: the last step of its tenants' syncs: a `FollowUp` (pipeline/fact_stores.py).
        staged_rows: by table name, the `StagedRows` (storage/catalog/erasure/retention.py) that
            count and delete rows that wait to become documents.
        texts: columns of these tables with texts of people or sources, as "table.column": new rules
            for credentials mask matches in them.
        assets: Dagster assets by key.
        checks: `TenantCheck` or asset checks of Dagster, by `asset.check`.
        jobs, sensors, schedules: by their Dagster names.
        routers: FastAPI routers by path prefix.
        pages: pages next to Dagster's, by path: callables that take a function that opens the
            catalog, and return Starlette routes.
        panels: the contents of its tenants' panel, by path: `SystemPanel`.
        commands: Typer groups, by the name of the command in `rag-assets NAME`.
        command_help: the first sentence of a command's help, by its name, for the list of commands;
            a command without one is imported for this list.
        own_process_commands: names of commands that the fork server must not run, because they
            outlive the server or work outside an installation.
        tools: MCP tools by name; a tool for tenants of some profiles takes precedence over a tool
            for all tenants with the same name.
        tenant_lists: keys of tenants.yaml, in addition to `tenants`, under which tenants are
            listed: a `TenantList` (tenants/file.py) by the key. The key is also the origin of its
            tenants.
        problems: classes of errors with their own `problem_kind`, by the name of that kind.
        prompts: MCP prompts by name.
        prompt_headings: headings of sections that it adds to prompts, such as "Coding Rules"; the
            text of a document that imitates a heading is escaped.
        retrieval_steps: steps of a search by name; profiles choose them.
        fact_stores: by the name of a chunker that reads facts, the `FactStore`
            (pipeline/fact_stores.py) that stores the conclusions from these facts.
        tenant_settings: by a key of tenants.yaml with a list, the Pydantic model of its entries.
        question_readers: by the name of a chunker that reads facts, the `QuestionReader`
            (search/services.py) that reads the questions to tenants with this chunker.
        run_reports: by the name of an asset, the function that returns its materialization after a
            run has published documents, or None.

    Raises:
        ConfigurationError: a name or a reference is malformed.
    """

    name: str
    profile: Profile | None = None
    source_kinds: Parts = field(default_factory=dict)
    chunkers: Parts = field(default_factory=dict)
    tables: Parts = field(default_factory=dict)
    migrations: Migrations | None = None
    service_rights: Mapping[str, str] = field(default_factory=dict)
    follow_up: Reference | None = None
    staged_rows: Parts = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    assets: Parts = field(default_factory=dict)
    checks: Parts = field(default_factory=dict)
    jobs: Parts = field(default_factory=dict)
    sensors: Parts = field(default_factory=dict)
    schedules: Parts = field(default_factory=dict)
    routers: Parts = field(default_factory=dict)
    pages: Parts = field(default_factory=dict)
    panels: Parts = field(default_factory=dict)
    commands: Parts = field(default_factory=dict)
    command_help: Mapping[str, str] = field(default_factory=dict)
    own_process_commands: frozenset[str] = frozenset()
    tools: Parts = field(default_factory=dict)
    tenant_lists: Parts = field(default_factory=dict)
    problems: Parts = field(default_factory=dict)
    prompts: Parts = field(default_factory=dict)
    prompt_headings: tuple[str, ...] = ()
    retrieval_steps: Parts = field(default_factory=dict)
    fact_stores: Parts = field(default_factory=dict)
    tenant_settings: Parts = field(default_factory=dict)
    question_readers: Parts = field(default_factory=dict)
    run_reports: Parts = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"system {self.name!r}: the name is not valid",
                hint="use lower-case letters and digits, with hyphens between words",
            )
        for kind in PART_KINDS:
            parts: Parts = getattr(self, kind)
            for name, reference in parts.items():
                if not _REFERENCE.fullmatch(reference):
                    raise ConfigurationError(
                        f"system {self.name!r}: {kind}: {name!r} has the invalid reference"
                        f" {reference!r}",
                        hint='write the reference as "package.module:attribute"',
                    )
        if bool(self.tables) != (self.migrations is not None):
            raise ConfigurationError(
                f"system {self.name!r} has tables without migrations, or migrations without tables",
                hint="set both `tables` and `migrations`",
            )
        if unknown := self.own_process_commands - set(self.commands):
            raise ConfigurationError(
                f"system {self.name!r}: own_process_commands: {min(unknown)!r} is not one of its"
                " commands",
                hint="use keys of `commands`",
            )
        problem = None if self.profile is None else self.profile.opt_in_problem
        if problem is not None and problem not in self.problems:
            raise ConfigurationError(
                f"system {self.name!r}: opt_in_problem: {problem!r} is not one of its problems",
                hint="use a key of `problems`",
            )
        for column in self.texts:
            if column.partition(".")[0] not in self.tables:
                raise ConfigurationError(
                    f"system {self.name!r}: texts: {column!r} is in none of its tables",
                    hint='write it as "table.column"',
                )


PART_KINDS: tuple[str, ...] = (
    "tables",
    "staged_rows",
    "source_kinds",
    "chunkers",
    "assets",
    "checks",
    "jobs",
    "sensors",
    "schedules",
    "routers",
    "pages",
    "panels",
    "commands",
    "tools",
    "tenant_lists",
    "problems",
    "prompts",
    "retrieval_steps",
    "fact_stores",
    "tenant_settings",
    "question_readers",
    "run_reports",
)
"""The attributes of a System that hold parts."""
