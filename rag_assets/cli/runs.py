"""Runs of the pipeline and the checks in this process, recorded in the Dagster instance."""

from __future__ import annotations

import builtins
import logging
import math
import re
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from rag_assets.cli.output import progress
from rag_assets.common.errors import RagAssetsError, TenantDisabled, TenantGone

if TYPE_CHECKING:
    import dagster as dg

    from rag_assets.cli.session import Session
    from rag_assets.declarations import Naming
    from rag_assets.pipeline.listing import ListingPace

_PARTITION_TAG = "dagster/partition"
_DAGSTER_LINES = ("Dependencies for step",)
STAGES = ("raw_documents", "parsed_text", "chunks", "embeddings", "search_index")
_VANISHED_COUNT = "changed since they were listed"
Plain: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None


class RunFailed(RagAssetsError):
    """The run failed; the message is the reason of its first failed step."""


@dataclass(frozen=True, slots=True)
class StageResult:
    """The result of an asset in a run.

    Attributes:
        cost: cost in dollars; None if the price is unknown or does not apply.
        promised: cost of submitted batches in dollars.
        remedy: what a person can do about an unavailable provider.
    """

    counts: Mapping[str, int]
    seconds: float
    cost: float | None = None
    promised: float = 0.0
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run.

    Attributes:
        failure: reason and hint if the run failed; otherwise None.
    """

    run_id: str
    stages: Mapping[str, StageResult]
    checks: tuple[CheckResult, ...] = ()
    failure: RunFailed | None = None

    @property
    def is_halted(self) -> bool:
        """Return whether the run stopped embedding because the embedder is unavailable."""
        embeddings, index = self.stages.get("embeddings"), self.stages.get("search_index")
        if embeddings is None or index is None:
            return False
        return "pending" in index.counts and bool(embeddings.counts.get("halted"))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one asset check.

    Attributes:
        metadata: metadata by title, as on Dagster's run page; a table is a list of its rows.
    """

    asset: str
    check: str
    passed: bool
    severity: str
    description: str | None
    metadata: Mapping[str, Plain] = field(default_factory=dict)


class Runner:
    """Runs Dagster jobs in this process."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(
        self,
        job_name: str,
        tenant_id: str,
        ops: Mapping[str, Any] | None = None,
        *,
        reason: str = "started by a command",
        tags: Mapping[str, str] = MappingProxyType({}),
    ) -> RunResult:
        """Run a job for one tenant's partition, and return the result.

        Args:
            ops: configuration of the job's ops, by their plain names.
            tags: further tags of the run.
        """
        from rag_assets.resources.tenant_lock import REASON_TAG

        with _convert_outages():
            return self._run(job_name, tenant_id, ops, {REASON_TAG: reason, **tags})

    def run_slice(
        self,
        tenant_id: str,
        pace: ListingPace,
        ops: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
        *,
        reason: str = "started by a command",
    ) -> RunResult:
        """Run one slice of a tenant's sync, which lists the sources only if a listing is due.

        Args:
            pace: decides whether a listing is due.
            ops: configuration of the stages, by their plain names.
        """
        listing = {**ops.get("raw_documents", {}), "reuse_listings": not pace.begin_run()}
        configs = {**ops, "raw_documents": listing}
        run = self.run(
            "sync_tenant",
            tenant_id,
            {name: {"config": config} for name, config in configs.items()},
            reason=reason,
        )
        if {"raw_documents", "parsed_text"} <= run.stages.keys():
            has_vanished = bool(run.stages["parsed_text"].counts.get(_VANISHED_COUNT))
            pace.end_run(run.stages["raw_documents"].seconds, has_vanished=has_vanished)
        return run

    def _run(
        self, job_name: str, tenant_id: str, ops: Mapping[str, Any] | None, tags: Mapping[str, str]
    ) -> RunResult:
        from rag_assets.resources.own_runs import INSTALLATION_TAG
        from rag_assets.resources.tenant_lock import build_process_tags

        instance, names = self._session.instance, self._session.names
        instance.add_dynamic_partitions(names.partitions_name, [tenant_id])
        job = get_repository(names).get_job(names.own(job_name))
        run_id = str(uuid.uuid4())
        result = job.execute_in_process(
            instance=instance,
            run_id=run_id,
            partition_key=tenant_id,
            run_config={
                "ops": {
                    names.step_key(op) if op in STAGES else names.own(op): config
                    for op, config in (ops or {}).items()
                },
                "loggers": {"console": {}},
            },
            raise_on_error=False,
            tags={
                **build_process_tags(self._session.settings),
                INSTALLATION_TAG: str(self._session.identity.id),
                **tags,
            },
        )
        if instance.get_run_by_id(run_id) is None:
            raise TenantGone(
                f"tenant {tenant_id!r} was removed during the run",
                hint="nothing of this run was kept; add the tenant again to index it",
            )
        failure = (
            _find_skip_failure(result, tenant_id)
            if result.success
            else _find_failure(result, job_name)
        )
        return RunResult(
            run_id=run_id,
            stages=_collect_stages(result, {names.step_key(stage): stage for stage in STAGES}),
            checks=_collect_checks(result),
            failure=failure,
        )


def get_repository(names: Naming | None = None) -> dg.RepositoryDefinition:
    """Return the Dagster repository for runs of commands; forks share the repository.

    Args:
        names: naming of the definitions; by default, the naming of our own code location.
    """
    from rag_assets import definitions
    from rag_assets.declarations import PLAIN

    return _build_repository(definitions.build_defs, names or PLAIN)


@cache
def _build_repository(
    build: Callable[..., dg.Definitions], names: Naming
) -> dg.RepositoryDefinition:
    # Users of commands cannot change the use of beta features.
    warnings.filterwarnings("ignore", message=".* is currently in (beta|preview)")
    loggers = {"console": _build_terminal_logger()}
    return build(names=names, loggers=loggers).get_repository_def()


@contextmanager
def _convert_outages() -> Iterator[None]:
    """Convert Dagster's error for an unavailable Postgres into the project's error."""
    from dagster_postgres.utils import DagsterPostgresException
    from sqlalchemy.exc import InterfaceError, OperationalError

    from rag_assets.storage.catalog.database import convert_error

    try:
        yield
    except DagsterPostgresException as error:
        cause = error.__cause__
        raise convert_error(cause if isinstance(cause, Exception) else error) from None
    except (OperationalError, InterfaceError) as error:
        raise convert_error(error) from None


def _collect_stages(
    result: dg.ExecuteInProcessResult, steps: Mapping[str | None, str]
) -> dict[str, StageResult]:
    """Return the results of a run's assets, by the plain name of the asset."""
    stages = {}
    for event in result.all_events:
        if event.is_step_failure and event.step_key in steps:
            data = event.step_failure_data.user_failure_data
            if data is not None:
                stages[steps[event.step_key]] = _build_stage_result(data.metadata)
        elif event.event_type_value == "ASSET_MATERIALIZATION" and event.asset_key is not None:
            materialization = event.step_materialization_data.materialization
            stages[event.asset_key.path[-1]] = _build_stage_result(materialization.metadata)
    return stages


def _build_stage_result(metadata: Mapping[str, Any]) -> StageResult:
    values = {name: getattr(value, "value", None) for name, value in metadata.items()}
    counts = {
        name: value
        for name, value in values.items()
        if isinstance(value, int) and not name.startswith("dagster/")
    }
    return StageResult(
        counts,
        seconds=float(values.get("seconds") or 0.0),
        cost=values.get("cost in $"),
        promised=float(values.get("promised to batches in $") or 0.0),
        remedy=values.get("remedy"),
    )


def _collect_checks(result: dg.ExecuteInProcessResult) -> tuple[CheckResult, ...]:
    results = []
    for event in result.all_events:
        if event.event_type_value != "ASSET_CHECK_EVALUATION":
            continue
        evaluation = event.asset_check_evaluation_data
        results.append(
            CheckResult(
                asset=evaluation.asset_key.path[-1],
                check=evaluation.check_name,
                passed=evaluation.passed,
                severity=evaluation.severity.value,
                description=evaluation.description,
                metadata=convert_metadata(evaluation.metadata),
            )
        )
    return tuple(results)


def _find_skip_failure(result: dg.ExecuteInProcessResult, tenant_id: str) -> RunFailed | None:
    """Return a RunFailed if a run did no work because the tenant is disabled or removed, else None.

    For Dagster such a run is successful, so that it does not fail a backfill.
    """
    from rag_assets.resources.workbench import SKIPPED
    from rag_assets.storage.catalog.tenants.table import build_unknown_tenant_error

    for event in result.all_events:
        if event.event_type_value == "ASSET_MATERIALIZATION":
            metadata = event.step_materialization_data.materialization.metadata
            if SKIPPED in metadata:
                is_disabled = metadata[SKIPPED].value == "disabled"
                build_error = TenantDisabled if is_disabled else build_unknown_tenant_error
                error = build_error(tenant_id)
                return RunFailed(error.message, hint=error.hint)
    return None


def _find_failure(result: dg.ExecuteInProcessResult, job_name: str) -> RunFailed:
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data
            if data.user_failure_data is not None and data.user_failure_data.description:
                return _parse_failure(data.user_failure_data.description)
            if data.error is not None:
                return _parse_failure(describe_root_error(data.error))
    for event in result.all_events:
        error = getattr(event.event_specific_data, "error", None)
        if error is not None:
            return _parse_failure(describe_root_error(error))
    return RunFailed(
        f"the run of {job_name} failed", hint=f"open run {result.run_id} in Dagster's UI"
    )


def describe_root_error(error: Any) -> str:
    """Return the message of the error that caused others; of an unexpected one, also its type."""
    while error.cause is not None:
        error = error.cause
    name = error.cls_name or ""
    # Dagster puts the class before the message, and its module if it is not built in.
    text = re.sub(rf"^(?:[\w<>]+\.)*{re.escape(name)}: ", "", str(error.message).strip())
    return f"unexpected {name}: {text}" if hasattr(builtins, name) else text


def _parse_failure(description: str) -> RunFailed:
    message, _, hint = description.strip().partition("\n")
    return RunFailed(message, hint=hint.strip() or None)


def _build_terminal_logger() -> Any:
    """Return a Dagster logger that prints our lines of a run as progress, but not Dagster's own."""
    import dagster as dg

    class Terminal(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            meta = getattr(record, "dagster_meta", {})
            line = str(meta.get("orig_message") or record.getMessage())
            if meta.get("dagster_event") is None and not line.startswith(_DAGSTER_LINES):
                progress(f"{meta['job_tags'][_PARTITION_TAG]}: {line}")

    @dg.logger(None, description="A run's progress on the terminal.")
    def terminal(_: dg.InitLoggerContext) -> logging.Logger:
        logger = logging.Logger("rag_assets.terminal", level=logging.INFO)
        logger.addHandler(Terminal())
        return logger

    return terminal


def convert_metadata(metadata: Mapping[str, dg.MetadataValue[Any]]) -> dict[str, Plain]:
    """Convert metadata to plain values: a table to a list of rows, an unknown type to text."""
    return {title: _to_plain_value(value) for title, value in metadata.items()}


def _to_plain_value(value: dg.MetadataValue[Any]) -> Plain:
    import dagster as dg

    if isinstance(value, dg.TableMetadataValue):
        return [_convert_plain(record.data) for record in value.records]
    return _convert_plain(value.value)


def _convert_plain(value: object) -> Plain:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        # JSON cannot represent these, and a check may report a vector that is not finite.
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): _convert_plain(item) for name, item in value.items()}
    # Dagster's records are subclasses of tuple that cannot be iterated.
    if type(value) in {list, tuple}:
        return [_convert_plain(item) for item in cast("Sequence[object]", value)]
    return str(value)
