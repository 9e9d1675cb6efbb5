"""The services of team guidelines in one object, and the usage report of a project."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta

from rag_assets.api.guideline_responses import CAMEL_CASE
from rag_assets.billing.embedders import Embedders
from rag_assets.billing.spending import (
    MAX_COMPARED_EVENTS,
    Cap,
    CapName,
    find_holding_caps,
    find_present_caps,
)
from rag_assets.pipeline.uploads import UploadService
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.accounts.usage import Usage, UsageRow, today
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.lake.store import Lake
from rag_assets.systems.team_guidelines.documents import GuidelineLibrary
from rag_assets.systems.team_guidelines.projects import (
    GuidelineKeys,
    GuidelineProjects,
    OpenProject,
)


class Guidelines:
    """Services of team guidelines. Every call blocks; no connection stays open."""

    def __init__(
        self, catalog: Catalog, embedders: Embedders, blobs: BlobStore, uploads: UploadService
    ) -> None:
        lake = Lake(embedders.settings.lake_url)
        self.projects = GuidelineProjects(catalog, embedders)
        self.keys = GuidelineKeys(catalog, embedders)
        self.library = GuidelineLibrary(catalog, blobs, lake, uploads, self.keys)
        self.usage = GuidelineUsage(catalog, self.library)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """Total usage of providers.

    Attributes:
        requests: number of requests, including failed ones.
        texts: number of embedded passages and questions.
        tokens: number of tokens, as providers count them.
        output_tokens: share of `tokens` that a chat model wrote.
        unpriced_tokens: share of `tokens` with an unknown price.
        cost: cost of the tokens with a known price, in dollars.
    """

    __pydantic_config__ = CAMEL_CASE

    requests: int
    texts: int
    tokens: int
    output_tokens: int
    unpriced_tokens: int
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfUsage:
    """The usage of one model on one day in UTC."""

    __pydantic_config__ = CAMEL_CASE

    day: date
    provider: str
    model: str
    used: UsageSum


@dataclass(frozen=True, slots=True, kw_only=True)
class CapView:
    """A cap on spending.

    Attributes:
        name: perMonth or perDay.
        dollars: maximum spending.
        spent: dollars so far, including batches in progress.
        until: time at which the cap is reset.
        reached: whether documents wait because too little remains.
    """

    __pydantic_config__ = CAMEL_CASE

    name: str
    dollars: float
    spent: float
    until: datetime | None
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Documents that are not embedded yet.

    Attributes:
        documents: number of documents with passages that lack vectors.
        tokens: number of tokens in these passages; equal passages count once.
        cost: cost of embedding them, in dollars; None if no price is known.
        unmeasured: number of further documents that are not chunked yet.
    """

    __pydantic_config__ = CAMEL_CASE

    documents: int
    tokens: int
    cost: float | None
    unmeasured: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUsage:
    """The usage of a project.

    Attributes:
        days: usage by day, provider and model, newest first.
        month: total of the current month in UTC.
        organization_month: total of the current month for all projects of the organization.
    """

    __pydantic_config__ = CAMEL_CASE

    project_id: str
    organization_id: str
    since: date
    days: tuple[DayOfUsage, ...]
    month: UsageSum
    caps: tuple[CapView, ...]
    waiting: Waiting
    organization_month: UsageSum


class GuidelineUsage:
    """Reports the usage of projects."""

    def __init__(self, catalog: Catalog, library: GuidelineLibrary) -> None:
        self._catalog = catalog
        self._library = library

    def report(self, project: OpenProject, days: int) -> ProjectUsage:
        """Return the usage of a project in the last days, including today."""
        now = today()
        since, month = now - timedelta(days=days - 1), now.replace(day=1)
        tenant_id, organization = project.record.id, project.organization_id
        records = self._catalog.projects.list_of_organization(organization)
        return ProjectUsage(
            project_id=project.project_id,
            organization_id=organization,
            since=since,
            days=tuple(map(_build_day, self._catalog.usage.rows(since, tenant_id))),
            month=_build_sum(self._catalog.usage.sum([tenant_id], month)),
            caps=self._read_caps(project),
            waiting=self._count_waiting(project),
            organization_month=_build_sum(
                self._catalog.usage.sum([record.id for record in records], month)
            ),
        )

    def _read_caps(self, project: OpenProject) -> tuple[CapView, ...]:
        # A cap per run has no meaning outside a run.
        caps = project.tenant.caps.model_copy(update={"per_run": None})
        tenant = project.tenant.model_copy(update={"caps": caps})
        present = find_present_caps(self._catalog, project.ref, tenant, run=0.0)
        stopped = self._find_stopping_caps(project, present)
        return tuple(
            _build_cap(
                cap,
                is_reached=cap.share >= 1
                or cap.would_stop(project.passage_cost)
                or cap.name in stopped,
            )
            for cap in present
        )

    def _find_stopping_caps(self, project: OpenProject, caps: Sequence[Cap]) -> Collection[CapName]:
        """Return the caps that make documents wait now.

        There may be enough left of such a cap for a passage, but not for the whole stopped request.
        """
        states = self._catalog.upload_states.page(project.record.id)
        if all(state.error_kind != "cap-reached" for state in states):
            return ()
        events = self._catalog.events.latest(
            project.ref.id, kind="cap_reached", limit=MAX_COMPARED_EVENTS
        )
        return find_holding_caps(caps, events, today())

    def _count_waiting(self, project: OpenProject) -> Waiting:
        documents, tokens, unmeasured = self._library.count_waiting(project)
        return Waiting(
            documents=documents,
            tokens=tokens,
            cost=None if project.price is None else project.price.compute_cost(tokens),
            unmeasured=unmeasured,
        )


_CAPS = {"per_month": "perMonth", "per_day": "perDay", "per_run": "perRun"}


def _build_cap(cap: Cap, *, is_reached: bool) -> CapView:
    return CapView(
        name=_CAPS[cap.name],
        dollars=cap.most,
        spent=cap.spent,
        until=cap.until,
        reached=is_reached,
    )


def _build_sum(used: Usage) -> UsageSum:
    return UsageSum(**{field.name: getattr(used, field.name) for field in fields(UsageSum)})


def _build_day(row: UsageRow) -> DayOfUsage:
    return DayOfUsage(
        day=row.day, provider=row.provider, model=row.model, used=_build_sum(row.used)
    )
