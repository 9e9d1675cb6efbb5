"""The Dagster resource that gives assets and checks the context of their partition's tenant."""

import math
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

import dagster as dg
from pydantic import PrivateAttr

from rag_assets.common.errors import RagAssetsError, TenantDisabled, UnknownTenant
from rag_assets.common.settings import Settings
from rag_assets.ingest.workers.pool import PersistentPool, count_usable_cores
from rag_assets.pipeline.context import SliceLimits, TenantContext
from rag_assets.pipeline.generations import Judge
from rag_assets.pipeline.removal import delete_late_writes
from rag_assets.privacy.masker import get_masker, get_scanner
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.stores import (
    ElasticsearchResource,
    EmbedderResource,
    LakeResource,
    PostgresResource,
)
from rag_assets.runtime.watch_report import WatchReportFile
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord

SKIPPED: Final = "skipped"
"""Metadata key of skipped steps, with the reason: the tenant is "disabled" or "removed"."""
_REPORT_SECONDS = 0.5
_MAX_KEPT_CONTEXTS = 2
"""Maximum number of kept contexts: one for the steps, and one for the checks between them."""


@dataclass(frozen=True, slots=True)
class _KeptContext:
    """The context of an earlier step, kept for the following steps of the same run."""

    record: TenantRecord
    guard: Callable[[], None]
    context: TenantContext


class Workbench(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Creates the context of a stage or a check.

    Attributes:
        slice_documents, slice_megabytes, slice_parse_seconds, slice_embed_seconds,
            slice_list_seconds, slice_hurried_seconds: see SliceLimits.
    """

    postgres: dg.ResourceDependency[PostgresResource]
    own_runs: dg.ResourceDependency[OwnRuns]
    elasticsearch: dg.ResourceDependency[ElasticsearchResource]
    lake: dg.ResourceDependency[LakeResource]
    embedders: dg.ResourceDependency[EmbedderResource]
    slice_documents: int = SliceLimits().documents
    slice_megabytes: int = SliceLimits().megabytes
    slice_parse_seconds: float = SliceLimits().parse_seconds
    slice_embed_seconds: float = SliceLimits().embed_seconds
    slice_list_seconds: float = SliceLimits().list_seconds
    slice_hurried_seconds: float = SliceLimits().hurried_seconds
    _workers: PersistentPool | None = PrivateAttr(default=None)
    _kept: list[_KeptContext] = PrivateAttr(default_factory=list)

    @property
    def installation(self) -> InstallationResource:
        """Return the resource of the installation whose catalog this workbench opens."""
        return self.postgres.installation

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Mark and record the run; prepare worker processes for stages that need them."""
        if context.run is not None and context.instance is not None:
            with suppress(RagAssetsError):  # Without Postgres, the run's first step fails anyway.
                self.own_runs.add_missing_tags(context.instance, context.run)
                self.own_runs.record_history(context.instance, context.run)
        self._workers = PersistentPool(
            count_usable_cores(), self.installation.settings.local / "cache"
        )

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """End the worker processes."""
        if self._workers is not None:
            self._workers.close()

    def context(
        self, tenant_id: str, *, guard: Callable[[], None], log: Callable[[str], None]
    ) -> TenantContext:
        """Return the context of a tenant for a stage or a check.

        The steps of a run in one process get the same context, with its open tables.
        """
        catalog = self.postgres.catalog()
        record = catalog.tenants.get(tenant_id)
        _require_active(record)
        wanted = (record, guard)
        kept = next((kept for kept in self._kept if (kept.record, kept.guard) == wanted), None)
        if kept is None:
            kept = _KeptContext(record, guard, self._build(catalog, record, guard, log))
            self._kept = [kept, *self._kept][:_MAX_KEPT_CONTEXTS]
        return replace(kept.context, log=log)

    def _build(
        self,
        catalog: Catalog,
        record: TenantRecord,
        guard: Callable[[], None],
        log: Callable[[str], None],
    ) -> TenantContext:
        context = TenantContext.open(
            record,
            self.embedders.embedders(catalog),
            catalog,
            self.lake.lake(),
            self.elasticsearch.store(),
            guard=guard,
            log=log,
        )
        return replace(
            context,
            limits=SliceLimits(
                self.slice_documents,
                self.slice_megabytes,
                self.slice_parse_seconds,
                self.slice_embed_seconds,
                self.slice_list_seconds,
                self.slice_hurried_seconds,
            ),
            kept_pool=self._workers,
            has_changed=_create_change_finder(context.settings, record.id),
        )

    def retreat(self, tenant_id: str) -> None:
        """Delete what a run wrote after losing its lock, if the run's tenant has been removed."""
        blobs = open_blobs(self.installation.settings)
        store = self.elasticsearch.store()
        delete_late_writes(self.postgres.catalog(), self.lake.lake(), store, blobs, tenant_id)

    def scanner(self) -> SecretScanner:
        """Return the secret scanner, loaded once per process.

        Its rules are compiled once per installation.
        """
        return get_scanner(self.installation.settings.local)


def _create_change_finder(settings: Settings, tenant_id: str) -> Callable[[], bool]:
    """Return a function that returns whether the change watcher reports the tenant as changed.

    It reads the watcher's report at most every half second.
    """
    report = WatchReportFile(settings)
    is_changed, read_at = False, -math.inf

    def has_changed() -> bool:
        nonlocal is_changed, read_at
        if not is_changed and time.monotonic() - read_at > _REPORT_SECONDS:
            read_at = time.monotonic()
            is_changed = tenant_id in report.read().changed
        return is_changed

    return has_changed


class SkippedTenant(dg.Failure):
    """A step is skipped because its tenant is disabled or removed.

    Attributes:
        reason: "disabled" or "removed".
    """

    def __init__(self, description: str, reason: str) -> None:
        super().__init__(description, allow_retries=False)
        self.reason = reason


@contextmanager
def convert_to_failures(installation: InstallationResource) -> Iterator[None]:
    """Convert the project's errors, and errors that contain credentials, to step failures."""
    try:
        yield
    except (dg.Failure, dg.RetryRequested):
        raise
    except RagAssetsError as error:
        raise build_failure(error, installation) from None
    except Exception as error:
        described = "".join(traceback.format_exception(error))
        if _mask_text(described, installation) == described:
            raise
        # Dagster would record the causes too, so only the type and location are kept.
        raise build_failure(error, installation) from None


def build_failure(error: Exception, installation: InstallationResource) -> dg.Failure:
    """Return a step failure with an error's message and hint.

    For errors of other code, it contains only type and location.
    """
    if isinstance(error, dg.Failure):
        return error
    if isinstance(error, RagAssetsError):
        hint = f"\n{error.hint}" if error.hint else ""
        text = _mask_text(f"{error.message}{hint}", installation)
        if isinstance(error, TenantDisabled | UnknownTenant):
            return SkippedTenant(
                text, "disabled" if isinstance(error, TenantDisabled) else "removed"
            )
        return dg.Failure(text, allow_retries=False)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    location = f"{Path(frame.filename).name}:{frame.lineno}"
    return dg.Failure(f"unexpected {type(error).__name__} in {location}")


def _mask_text(text: str, installation: InstallationResource) -> str:
    return get_masker(installation.settings.local).text(text)


def _require_active(record: TenantRecord) -> None:
    if record.state == "DISABLED":
        raise TenantDisabled(record.id)
    if record.state != "ACTIVE":
        raise UnknownTenant(f"tenant {record.id!r} is being removed, so it is not indexed")


class PublishJudge(Protocol):
    """Creates the function that judges the builds of a run before publication."""

    def __call__(self, workbench: Workbench, run_id: str, log: dg.DagsterLogManager) -> Judge:
        """Return the function that judges builds; see Judge.

        Args:
            run_id: id of the run that holds the tenant's lock.
        """
        ...
