"""drift: compares the live index with the catalog, entry by entry."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Cell, Compared, Severity, Verdict
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.drift import IndexState, inspect_index


def build_states_verdict(
    states: Sequence[IndexState], uris: Mapping[str, str], *, writer_at_work: bool = False
) -> Verdict:
    """Pass if every live build has exactly its entries, in the index to which it was written.

    Args:
        writer_at_work: whether another run may be between two steps of a write.
    """
    compared = [row for state in states for row in _iter_comparisons(state)]
    offenders = tuple(row for state in states for row in _iter_offenders(state, uris))
    severity: Severity = "WARN" if writer_at_work else "ERROR"
    return Verdict(
        passed=not offenders,
        description=_describe(states, offenders, writer_at_work=writer_at_work),
        compared=tuple(compared),
        columns=("generation", "fault", "which"),
        offenders=offenders,
        severity=severity,
    )


@tenant_check(
    "search_index",
    "drift",
    (
        "The live index contains exactly the entries in the catalog: none is missing, altered, "
        "orphaned or foreign. The vectors equal the vectors in the lake: each evaluation compares "
        "a share, so that all are compared within `drift.days`; `rag-assets check --deep` compares "
        "all. The index was not replaced and has its mapping, and the tenant's alias shows the "
        "serving generation."
    ),
    judges_builds=True,
    nightly=True,
    repairable=True,
    against_catalog=True,
)
def drift_check(context: CheckContext) -> Verdict:
    """Compare the index of every live build with the catalog.

    If there are differences, compare again while no other process writes.
    """
    by_counts, share = context.nightly, context.share
    states = inspect_index(context.tenant, context.build, share=share, by_counts=by_counts)
    if not all(state.is_healthy for state in states):
        with context.exclude_writers("drift detection") as tenant:
            if tenant is not None:
                states = inspect_index(tenant, share=share, by_counts=by_counts)
                return build_verdict(tenant, states, writer_at_work=lambda: False)
    return build_verdict(context.tenant, states, writer_at_work=context.has_other_writer)


def build_verdict(
    ctx: TenantContext, states: Sequence[IndexState], *, writer_at_work: Callable[[], bool]
) -> Verdict:
    """Return the verdict on live builds, from the compared states of their indexes.

    Args:
        writer_at_work: returns whether another run may be between two steps of a write; called only
            after a difference.
    """
    if all(state.is_healthy for state in states):
        return build_states_verdict(states, {})
    documents = ctx.catalog.documents.all(ctx.ref.id, deleted=True)
    uris = {document.document_id: document.uri for document in documents}
    return build_states_verdict(states, uris, writer_at_work=writer_at_work())


def _iter_comparisons(state: IndexState) -> Iterator[Compared]:
    drift, name = state.drift, f"generation {state.generation.number}"
    yield Compared(f"{name}: entries", drift.expected, drift.live)
    yield Compared(f"{name}: index", "present", state.index)
    yield Compared(
        f"{name}: alias shows the serving generation", expected=True, actual=state.alias_correct
    )
    yield Compared(f"{name}: mapping fits", expected=True, actual=state.fits)
    yield Compared(f"{name}: documents with altered vectors", 0, len(drift.vectors))
    yield Compared(f"{name}: documents with entries missing", 0, len(drift.missing))
    yield Compared(f"{name}: documents with altered entries", 0, len(drift.altered))
    yield Compared(f"{name}: orphaned entries", 0, len(drift.orphans))
    yield Compared(f"{name}: foreign entries", 0, len(drift.foreign))


def _iter_offenders(state: IndexState, uris: Mapping[str, str]) -> Iterator[tuple[Cell, ...]]:
    number, drift = state.generation.number, state.drift
    if state.index_lost:
        fault = "index is missing" if state.index == "missing" else "index was replaced"
        yield number, fault, state.generation.index_name
    if not state.fits:
        yield number, "index has a wrong mapping", state.generation.index_name
    if not state.alias_correct:
        yield number, "alias shows wrong entries", state.generation.index_name
    for fault, ids in (
        ("foreign entry", drift.foreign),
        ("altered entries", drift.altered),
        ("altered vectors", drift.vectors),
        ("missing entries", drift.missing),
        ("orphaned entry", drift.orphans),
    ):
        for id_ in ids:
            yield number, fault, uris.get(id_, id_)


def _describe(
    states: Sequence[IndexState], offenders: Sequence[tuple[Cell, ...]], *, writer_at_work: bool
) -> str:
    if not states:
        return "nothing has been indexed yet"
    if not offenders:
        entries = sum(state.drift.live for state in states)
        return f"{format_count(entries, 'entry', 'entries')}, equal to the catalog"
    _, fault, which = offenders[0]
    more = f" and {len(offenders) - 1:,} more" if len(offenders) > 1 else ""
    if writer_at_work:
        advice = "another run is writing for the tenant: check again when that run has ended"
    else:
        advice = "run `rag-assets sync TENANT --repair` to repair the index"
    return f"{fault}: {which}{more}; {advice}"
