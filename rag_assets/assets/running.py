"""What the five assets have in common: how a stage is run and how it is described."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg

from rag_assets.stages.context import TenantContext
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench, clear_failures

GROUP = "knowledge"
OWNERS = ["team:knowledge"]
RESOURCES = {"workbench", "tenant_lock"}


@contextmanager
def tenant_stage(
    context: dg.AssetExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> Iterator[TenantContext]:
    """The context of the run's tenant; errors become step failures with a hint."""
    with clear_failures():
        tenant_lock.guard()  # first: the id may be another tenant's by now
        yield workbench.context(
            context.partition_key, guard=tenant_lock.guard, log=context.log.info
        )


def table(columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> dg.TableMetadataValue:
    """A metadata table.

    Args:
        columns: Dagster's type of each column, by name.
        rows: values in the order of the columns.
    """
    names = list(columns)
    return dg.MetadataValue.table(
        records=[dg.TableRecord(dict(zip(names, row, strict=True))) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(name, type_) for name, type_ in columns.items()]),
    )


def seconds(value: float) -> dg.FloatMetadataValue:
    """A duration in seconds, to the millisecond."""
    return dg.MetadataValue.float(round(value, 3))


def bar_chart(title: str, bars: Sequence[tuple[str, int]]) -> dg.MarkdownMetadataValue:
    """A small chart that reads well wherever Markdown is shown."""
    most = max((count for _, count in bars), default=0)
    width = max((len(label) for label, _ in bars), default=0)
    lines = [
        f"{label:>{width}} │{'█' * round(24 * count / most) if most else ''} {count:,}"
        for label, count in bars
    ]
    return dg.MetadataValue.md("\n".join([f"**{title}**", "", "```", *lines, "```"]))
