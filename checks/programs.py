"""programs: finds connected programs whose schema version differs from this program's."""

from collections.abc import Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.storage.catalog.migrate import other_programs


def build_verdict(others: Sequence[str]) -> Verdict:
    """Pass if every program has the schema of this one.

    Args:
        others: connections of programs with a different schema.
    """
    return Verdict(
        passed=not others,
        description="; ".join(others) or "every connected program has the schema of this one",
        compared=(Compared("programs with a different schema", 0, len(others)),),
        columns=("fault", "which"),
        offenders=tuple(("different schema", other) for other in others),
        mend="run `rag-assets up` to restart the processes of this home folder; restart all other"
        " programs yourself",
    )


@tenant_check(
    "raw_documents",
    "programs",
    (
        "Every program that is connected to the catalog, on any machine, has the schema of this "
        "one. An older program stops working once a newer one has upgraded the catalog: a daemon "
        "no longer follows changes, and a service answers 503."
    ),
)
def programs_check(context: CheckContext) -> Verdict:
    """Query Postgres for the programs that are connected."""
    return build_verdict(other_programs(context.tenant.catalog.database))
