"""What a project has used of its provider, what it may spend, and what waits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from rag_assets.billing.ledger import EVENTS_READ, caps_that_hold, present_caps
from rag_assets.billing.spending import Cap, CapName
from rag_assets.models.embedding.prices import FREE, Price
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.usage import Usage, UsageRow, today
from rag_assets.systems.team_guidelines.camel import CAMEL
from rag_assets.systems.team_guidelines.library import GuidelineLibrary
from rag_assets.systems.team_guidelines.projects import OpenProject


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSum:
    """Usage of providers.

    Attributes:
        requests: attempts, including failed ones.
        texts: that were embedded, passages and questions.
        tokens: as providers count them.
        output_tokens: those of them that a chat model wrote.
        unpriced_tokens: those of them whose price is not known.
        cost: of all others, in dollars.
    """

    __pydantic_config__ = CAMEL

    requests: int
    texts: int
    tokens: int
    output_tokens: int
    unpriced_tokens: int
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DayOfUsage:
    """The usage of one model on one day of UTC."""

    __pydantic_config__ = CAMEL

    day: date
    provider: str
    model: str
    used: UsageSum


@dataclass(frozen=True, slots=True, kw_only=True)
class CapView:
    """A cap on spending.

    Attributes:
        name: perMonth or perDay.
        dollars: that may be spent.
        spent: dollars so far, batches under way included.
        until: when it starts anew.
        reached: whether too little is left of it, so that documents wait.
    """

    __pydantic_config__ = CAMEL

    name: str
    dollars: float
    spent: float
    until: datetime | None
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What is not embedded yet.

    Attributes:
        documents: whose passages lack vectors.
        tokens: of these passages, each text once.
        cost: of embedding them, in dollars; None if no price is known.
        unmeasured: documents that are not read yet, which are not in these figures.
    """

    __pydantic_config__ = CAMEL

    documents: int
    tokens: int
    cost: float | None
    unmeasured: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUsage:
    """The usage of a project.

    Attributes:
        days: by day, provider and model, the newest first.
        month: of the present month of UTC.
        organization_month: the same of all projects of its organization.
    """

    __pydantic_config__ = CAMEL

    project_id: str
    organization_id: str
    since: date
    days: tuple[DayOfUsage, ...]
    month: UsageSum
    caps: tuple[CapView, ...]
    waiting: Waiting
    organization_month: UsageSum


class GuidelineUsage:
    """The usage of projects.

    Args:
        catalog: records it.
        library: knows what waits.
    """

    def __init__(self, catalog: Catalog, library: GuidelineLibrary) -> None:
        self._catalog = catalog
        self._library = library

    def of(self, project: OpenProject, days: int) -> ProjectUsage:
        """The usage of a project.

        Args:
            project: whose.
            days: how many, today included.
        """
        now = today()
        since, month = now - timedelta(days=days - 1), now.replace(day=1)
        tenant_id, organization = project.record.id, project.organization_id
        records = self._catalog.projects.of_organization(organization)
        return ProjectUsage(
            project_id=project.project_id,
            organization_id=organization,
            since=since,
            days=tuple(map(_day, self._catalog.usage.rows(since, tenant_id))),
            month=_sum(self._catalog.usage.sum([tenant_id], month)),
            caps=self._caps(project),
            waiting=self._waiting(project),
            organization_month=_sum(self._catalog.usage.sum([each.id for each in records], month)),
        )

    def _caps(self, project: OpenProject) -> tuple[CapView, ...]:
        # A cap per run means nothing outside a run.
        caps = project.tenant.caps.model_copy(update={"per_run": None})
        tenant = project.tenant.model_copy(update={"caps": caps})
        found = present_caps(self._catalog, project.ref, tenant, run=0.0)
        stopped = self._stopped(project, found)
        # A cap that has less left than a passage costs lets nothing be embedded.
        passage = (project.price or FREE).of(tenant.chunker.parameters.limit)
        return tuple(
            _cap(cap, reached=cap.share >= 1 or cap.stops(passage) or cap.name in stopped)
            for cap in found
        )

    def _stopped(self, project: OpenProject, caps: Sequence[Cap]) -> Collection[CapName]:
        """Return the caps for which documents wait: a request costs more than a passage."""
        states = self._catalog.upload_states.page(project.record.id)
        if all(state.error_kind != "cap-reached" for state in states):
            return ()
        events = self._catalog.events.latest(project.ref.id, kind="cap_reached", limit=EVENTS_READ)
        return caps_that_hold(caps, events, today())

    def _waiting(self, project: OpenProject) -> Waiting:
        documents, tokens, unmeasured = self._library.waiting(project)
        return Waiting(
            documents=documents,
            tokens=tokens,
            cost=_cost(project.price, tokens),
            unmeasured=unmeasured,
        )


def _cost(price: Price | None, tokens: int) -> float | None:
    return None if price is None else price.of(tokens)


_CAPS = {"per_month": "perMonth", "per_day": "perDay", "per_run": "perRun"}


def _cap(cap: Cap, *, reached: bool) -> CapView:
    return CapView(
        name=_CAPS[cap.name],
        dollars=cap.most,
        spent=cap.spent,
        until=cap.until,
        reached=reached,
    )


def _sum(used: Usage) -> UsageSum:
    return UsageSum(
        requests=used.requests,
        texts=used.texts,
        tokens=used.tokens,
        output_tokens=used.output_tokens,
        unpriced_tokens=used.unpriced_tokens,
        cost=used.cost,
    )


def _day(row: UsageRow) -> DayOfUsage:
    return DayOfUsage(day=row.day, provider=row.provider, model=row.model, used=_sum(row.used))
