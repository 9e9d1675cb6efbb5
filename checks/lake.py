"""lake: verifies that the lake has the texts, chunks and vectors of all live builds."""

from collections.abc import Iterator, Mapping

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Cell, Compared, Severity, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.repair import LakeDrift, compare_lake

_FAULTS = {
    "missing": "file is missing",
    "cut": "file has a wrong size",
    "unreadable": "file cannot be read",
    "altered": "file was altered: rows differ from their checksums",
}


def build_verdict(
    drift: LakeDrift, uris: Mapping[str, str], *, writer_at_work: bool = False
) -> Verdict:
    """Pass if the lake has all rows that the live builds need, in readable files.

    Args:
        uris: uris of documents, by document id.
        writer_at_work: whether another run may be between two steps of a write.
    """
    offenders = tuple(_iter_offenders(drift, uris))
    severity: Severity = "WARN" if writer_at_work else "ERROR"
    return Verdict(
        passed=not offenders,
        description=_describe(drift, offenders, writer_at_work=writer_at_work),
        compared=(
            Compared("damaged files", 0, len(drift.files)),
            Compared("versions without their text", 0, _count_rows(drift, "parsed")),
            Compared("versions without their chunks", 0, _count_rows(drift, "chunks")),
            Compared("versions without a vector", 0, _count_rows(drift, "vectors")),
            Compared("texts to embed again", 0, drift.to_embed),
        ),
        columns=("generation", "fault", "which"),
        offenders=offenders,
        severity=severity,
        notes={"versions compared": drift.versions},
    )


@tenant_check(
    "embeddings",
    "lake",
    (
        "The lake has the text, the chunks and the vectors of every version in a live build, and "
        "the files of its tables exist and can be read. Each evaluation reads a share of the files "
        "completely, so that all are read within `drift.days`; `rag-assets check --deep` reads all."
    ),
    nightly=True,
    repairable=True,
    against_catalog=True,
)
def lake_check(context: CheckContext) -> Verdict:
    """Compare the lake with the live builds.

    If rows are missing, compare again while no other process writes.
    """
    drift, other_writer = compare_lake(context.tenant, context.share), False
    if not drift.is_empty:
        with context.exclude_writers("comparing the lake") as tenant:
            if tenant is not None:
                drift = compare_lake(tenant, context.share)
        other_writer = tenant is None and context.has_other_writer()
    documents = {id_ for lost in drift.losses for id_ in lost.documents}
    catalog = context.tenant.catalog
    documents_by_id = (
        catalog.documents.find(context.tenant.ref.id, sorted(documents)) if documents else []
    )
    uris = {document.document_id: document.uri for document in documents_by_id}
    return build_verdict(drift, uris, writer_at_work=other_writer)


def _count_rows(drift: LakeDrift, field: str) -> int:
    return sum(len(getattr(lost, field)) for lost in drift.losses)


def _iter_offenders(drift: LakeDrift, uris: Mapping[str, str]) -> Iterator[tuple[Cell, ...]]:
    for file in drift.files:
        yield None, f"{_FAULTS[file.fault]}", f"{file.table}/{file.path}"
    for lost in drift.losses:
        for fault, ids in (
            ("its text is missing", lost.parsed),
            ("its chunks are missing", lost.chunks),
            ("a vector is missing", lost.vectors),
        ):
            for id_ in sorted(ids):
                yield lost.generation.number, fault, uris.get(id_, id_)


def _describe(
    drift: LakeDrift, offenders: tuple[tuple[Cell, ...], ...], *, writer_at_work: bool
) -> str:
    if not offenders:
        return (
            f"the lake has all rows that {format_count(drift.versions, 'version')} in"
            " live builds need"
        )
    _, fault, which = offenders[0]
    more = f" and {len(offenders) - 1:,} more" if len(offenders) > 1 else ""
    if writer_at_work:
        return (
            f"{which}: {fault}{more}; another run is writing for the tenant: check again when that"
            " run has ended"
        )
    embedded = (
        f"; {format_count(drift.to_embed, 'text')} will be embedded again, because no store has"
        " their vectors"
        if drift.to_embed
        else " without embedding any text"
    )
    command = "run `rag-assets sync TENANT --repair` to restore the lake"
    return f"{which}: {fault}{more}; {command}{embedded}"
