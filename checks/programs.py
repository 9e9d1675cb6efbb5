"""programs: finds connected programs with a different version of the catalog's schema."""

from collections.abc import Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.storage.catalog.migrate import list_other_programs


def build_verdict(others: Sequence[str]) -> Verdict:
    """Pass if every program has the schema version of this program."""
    return Verdict(
        passed=not others,
        description="; ".join(others)
        or "every connected program has the schema version of this program",
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
        "Every program that is connected to the catalog, on any machine, has the schema version of "
        "this program. An older program stops working when a newer program has upgraded the "
        "catalog: a daemon no longer follows changes, and a service responds with 503."
    ),
)
def programs_check(context: CheckContext) -> Verdict:
    """Query Postgres for connected programs with a different schema version."""
    return build_verdict(list_other_programs(context.tenant.catalog.database))
