"""The last result of each tenant's asset checks, for pages, commands and schedules."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    build_row_upsert,
    matches_any,
    matches_document,
    read_row,
)
from rag_assets.storage.catalog.tables import (
    check_results,
    document_index,
    documents,
    serving,
    syncs,
)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check of one tenant: a new result, or the last stored result.

    Attributes:
        passed, severity, description: the verdict; None if the evaluation failed, or before the
            first verdict.
        error: why the last evaluation failed; None if it succeeded.
    """

    asset: str
    name: str
    passed: bool | None = None
    severity: str | None = None
    description: str | None = None
    error: str | None = None
    evaluated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """A summary of the last results of all checks of a tenant.

    Attributes:
        checked_at: the time of the oldest of these results; None if a check was never evaluated.
    """

    checked_at: datetime | None
    failed: int
    errors: int


@dataclass(frozen=True, slots=True)
class CatalogLag:
    """How far a tenant's index is behind, according to the catalog.

    Attributes:
        since: the time of the earliest change that the serving index lacks; None if it is up to
            date.
    """

    since: datetime | None = None
    held_deletions: int = 0


class CheckResultTable(CatalogQueries):
    """Stores and summarizes the last results of asset checks, in `check_results`."""

    def record(
        self, ref: TenantRef, outcomes: Sequence[CheckResult], *, first: bool = True
    ) -> None:
        """Store the outcomes of evaluations.

        Args:
            first: whether to store a check's first outcome. A sync evaluates only two checks and
                sets it to False, so that the tenant still counts as unchecked.
        """
        with self._database.begin_tenant(ref) as connection:
            for outcome in sorted(outcomes, key=lambda o: (o.asset, o.name)):
                key = {"tenant": ref.id, "asset": outcome.asset, "name": outcome.name}
                values: dict[str, Any] = {"error": outcome.error}
                if outcome.error is None:
                    verdict = ("passed", "severity", "description")
                    values |= {name: getattr(outcome, name) for name in verdict}
                    values["evaluated_at"] = sa.func.now()
                if first:
                    connection.execute(build_row_upsert(check_results, key, values))
                else:
                    same = [check_results.c[name] == value for name, value in key.items()]
                    connection.execute(sa.update(check_results).where(*same).values(values))

    def list(self, tenant_id: str) -> list[CheckResult]:
        """Return the last results of a tenant's checks, sorted by asset and name."""
        query = (
            sa.select(check_results)
            .where(check_results.c.tenant == tenant_id)
            .order_by(check_results.c.asset, check_results.c.name)
        )
        return [read_row(CheckResult, row) for row in self._database.fetch_rows(query)]

    def summaries(self, tenant_ids: Collection[str]) -> dict[str, CheckSummary]:
        """Return the summaries of these tenants; a tenant without results is left out."""
        columns = check_results.c
        never = sa.func.bool_or(columns.evaluated_at.is_(None))
        query = (
            sa.select(
                columns.tenant,
                sa.case((never, None), else_=sa.func.min(columns.evaluated_at)),
                sa.func.count().filter(columns.passed.is_(False)),
                sa.func.count().filter(columns.error.is_not(None)),
            )
            .where(matches_any(columns.tenant, tenant_ids))
            .group_by(columns.tenant)
        )
        return {row[0]: CheckSummary(*row[1:]) for row in self._database.fetch_rows(query)}

    def find_by_check(self, asset: str, name: str) -> dict[str, CheckResult]:
        """Return the last result of one check, by tenant."""
        query = sa.select(check_results).where(
            check_results.c.asset == asset, check_results.c.name == name
        )
        return {row.tenant: read_row(CheckResult, row) for row in self._database.fetch_rows(query)}

    def confirm(self, asset: str, name: str, tenant_ids: Collection[str]) -> None:
        """Set the evaluation time of a check to now, for tenants with an unchanged result."""
        query = (
            sa.update(check_results)
            .where(
                check_results.c.asset == asset,
                check_results.c.name == name,
                matches_any(check_results.c.tenant, tenant_ids),
            )
            .values(evaluated_at=sa.func.now())
        )
        with self._database.begin() as connection:
            connection.execute(query)

    def count_evaluated_since(
        self, checks: Collection[tuple[str, str]], age: timedelta
    ) -> Mapping[str, int]:
        """Return, by tenant, how many of these checks were evaluated within this age.

        A failed evaluation also counts: its error is shown, and the next daily evaluation retries
        it.
        """
        fresh = sa.or_(
            check_results.c.evaluated_at >= sa.func.now() - age, check_results.c.error.is_not(None)
        )
        query = sa.select(
            check_results.c.tenant, check_results.c.asset, check_results.c.name
        ).where(fresh)
        wanted = set(checks)
        counts: dict[str, int] = {}
        for tenant_id, asset, name in self._database.fetch_rows(query):
            if (asset, name) in wanted:
                counts[tenant_id] = counts.get(tenant_id, 0) + 1
        return counts

    def lags(self) -> dict[str, CatalogLag]:
        """Return, by tenant, the lag of indexes that lack changes or wait for a confirmation."""
        behind = (
            sa.select(documents.c.tenant, sa.func.min(documents.c.changed_at).label("since"))
            .outerjoin(serving, serving.c.tenant == documents.c.tenant)
            .outerjoin(
                document_index,
                sa.and_(
                    matches_document(document_index.c, documents.c),
                    document_index.c.generation == serving.c.generation,
                    document_index.c.indexed_key.is_not(None),
                ),
            )
            .where(
                sa.or_(
                    documents.c.status == "PROCESSING",
                    sa.and_(
                        documents.c.status != "DELETED",
                        document_index.c.document_key != documents.c.document_key,
                    ),
                )
            )
            .group_by(documents.c.tenant)
        )
        query_held = (
            sa.select(syncs.c.tenant, sa.func.sum(syncs.c.held_deletions))
            .where(syncs.c.held_deletions > 0)
            .group_by(syncs.c.tenant)
        )
        with self._database.begin() as connection:
            since: dict[str, datetime] = dict(connection.execute(behind).all())
            counts = {tenant: int(count) for tenant, count in connection.execute(query_held)}
        return {
            tenant: CatalogLag(since.get(tenant), counts.get(tenant, 0))
            for tenant in since.keys() | counts.keys()
        }
