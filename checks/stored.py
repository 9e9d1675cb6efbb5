"""stored: compares pushed records and uploaded files with their entries in the catalog."""

from collections.abc import Iterator, Mapping, Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Cell, Compared, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.source_contents import StoredDrift, compare_stored


def build_verdict(drifts: Sequence[StoredDrift], uris: Mapping[str, str]) -> Verdict:
    """Pass if the stored contents exist, are unaltered, and belong to a source."""
    offenders = tuple(row for drift in drifts for row in _iter_offenders(drift, uris))
    wrong = any(drift.missing or drift.altered for drift in drifts)
    return Verdict(
        passed=not offenders,
        description=_describe(drifts, offenders),
        compared=tuple(
            Compared(f"{drift.store} that {fault}", 0, len(ids))
            for drift in drifts
            for fault, ids in (
                ("are missing", drift.missing),
                ("were altered", drift.altered),
                ("belong to no source", drift.nobodys),
            )
        ),
        columns=("fault", "which"),
        offenders=offenders,
        severity="ERROR" if wrong else "WARN",
        notes={f"{drift.store} compared": drift.compared for drift in drifts},
    )


@tenant_check(
    "raw_documents",
    "stored",
    (
        "Every pushed record and every uploaded file is stored with its content, and belongs to a "
        "source of the tenant. Each evaluation compares a share of the contents, so that all are "
        "compared within `drift.days`; `rag-assets check --deep` compares all."
    ),
    nightly=True,
    against_catalog=True,
)
def stored_check(context: CheckContext) -> Verdict:
    """Compare the stored contents of documents with the catalog."""
    ctx = context.tenant
    drifts = compare_stored(ctx, context.share)
    ids = [id_ for drift in drifts for id_ in (*drift.missing, *drift.altered)]
    documents_by_id = ctx.catalog.documents.find(ctx.ref.id, ids) if ids else []
    return build_verdict(
        drifts, {document.document_id: document.uri for document in documents_by_id}
    )


def _iter_offenders(drift: StoredDrift, uris: Mapping[str, str]) -> Iterator[tuple[Cell, ...]]:
    for fault, ids in (
        (f"{drift.item_name} is missing", drift.missing),
        (f"{drift.item_name} was altered", drift.altered),
        (f"{drift.item_name} belongs to no source", drift.nobodys),
    ):
        for id_ in ids:
            yield fault, uris.get(id_, id_)


def _describe(drifts: Sequence[StoredDrift], offenders: Sequence[tuple[Cell, ...]]) -> str:
    if not offenders:
        records = sum(drift.compared for drift in drifts)
        return f"{format_count(records, 'stored content')} equal to the pushed or uploaded original"
    fault, which = offenders[0]
    more = f" and {len(offenders) - 1:,} more" if len(offenders) > 1 else ""
    remedy = next(drift.remedy for drift in drifts if not drift.is_empty)
    return f"{fault}: {which}{more}; {remedy}"
