"""disk: compares the free space of disks with Elasticsearch's flood-stage limit."""

from collections.abc import Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.common.disk_space import DiskSpace, in_megabytes, measure_own_disks
from rag_assets.common.errors import DiskFull


def build_verdict(disks: Sequence[DiskSpace], index_faults: Sequence[DiskFull]) -> Verdict:
    """Pass if no disk is nearly full."""
    full = [str(disk) for disk in disks if disk.is_nearly_full]
    offenders = [*full, *(fault.message for fault in index_faults)]
    return Verdict(
        passed=not offenders,
        description="; ".join(offenders) or "every disk has the space that Elasticsearch requires",
        compared=(Compared("nearly full disks", 0, len(offenders)),),
        columns=("fault", "which"),
        offenders=tuple(("nearly full", offender) for offender in offenders),
        notes={disk.place: f"{in_megabytes(disk.free_bytes)} free" for disk in disks},
        mend="free or add disk space, then run `rag-assets sync TENANT`",
    )


@tenant_check(
    "search_index",
    "disk",
    (
        "The disks of the lake, of uploaded files, of the local servers and of Elasticsearch's "
        "nodes have more free space than Elasticsearch's flood stage, at which it accepts no more "
        "entries. If a disk is full, syncs stop before they embed texts that cannot be stored."
    ),
)
def disk_check(context: CheckContext) -> Verdict:
    """Read the free space of the file systems and of Elasticsearch's nodes."""
    conditions = context.tenant.store.indexes.conditions()
    return build_verdict(
        measure_own_disks(context.tenant.settings),
        [condition for condition in conditions if isinstance(condition, DiskFull)],
    )
