"""relations: compares symbols, edges and derived documents with the indexed texts."""

from collections.abc import Mapping

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Severity, Verdict
from rag_assets.common.formatting import counted
from rag_assets.systems.code_memory.pipeline.relation_drift import RelationDrift, compare_relations


def verdict_of(
    drift: RelationDrift, uris: Mapping[str, str], *, writer_at_work: bool = False
) -> Verdict:
    """Require that the recorded relations match the indexed texts.

    Args:
        drift: the comparison.
        uris: names of documents by id.
        writer_at_work: whether another run may be between two steps of a write.
    """
    derived = drift.derived or {}
    offenders = (
        *(("other relations than its text states", uris.get(id_, id_)) for id_ in drift.altered),
        *((f"{number:,} derived documents differ", source) for source, number in derived.items()),
        *((("relations of texts that no build has", drift.nobodys),) if drift.nobodys else ()),
    )
    severity: Severity = "WARN" if writer_at_work else "ERROR"
    return Verdict(
        passed=drift.none,
        description=_description(drift, writer_at_work=writer_at_work),
        compared=(
            Compared("texts with other relations", 0, len(drift.altered)),
            Compared("texts that no build has", 0, drift.nobodys),
            Compared("derived documents that differ", 0, sum(derived.values())),
        ),
        columns=("fault", "which"),
        offenders=offenders,
        severity=severity,
        notes={"texts compared": drift.compared},
    )


@tenant_check(
    "search_index",
    "relations",
    (
        "Definitions and relations of source code are those that the indexed texts state, and "
        "derived documents are those that follow from the indexed files. Each evaluation compares "
        "a share of the texts, such that all are compared within `drift.days`; "
        "`rag-assets check --deep` compares all."
    ),
    nightly=True,
    repairable=True,
    against_catalog=True,
)
def relations_check(context: CheckContext) -> Verdict:
    """Compare relations with the lake's facts; if they differ, again without writers."""
    drift, other_writer = compare_relations(context.tenant, context.share), False
    if not drift.none:
        with context.unwritten("comparing relations") as tenant:
            if tenant is not None:
                drift = compare_relations(tenant, context.share)
        other_writer = tenant is None and context.has_other_writer()
    documents, ref = context.tenant.catalog.documents, context.tenant.ref
    found = documents.find(ref.id, [*drift.altered]) if drift.altered else []
    uris = {document.document_id: document.uri for document in found}
    return verdict_of(drift, uris, writer_at_work=other_writer)


def _description(drift: RelationDrift, *, writer_at_work: bool) -> str:
    if drift.none and not drift.compared:
        return "no source code is indexed"
    if drift.none:
        return f"relations of {counted(drift.compared, 'text')}, equal to what the lake's facts say"
    if writer_at_work:
        advice = "another run writes for the tenant now: check again when it has ended"
    else:
        advice = "`rag-assets sync TENANT --repair` makes them anew, embedding nothing"
    return f"{drift} differ; {advice}"
