"""vectors_beside: compares separate vector stores with the catalog."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Severity, Verdict
from rag_assets.common.errors import VectorsUnavailable
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.separate_vectors import SeparateVectorState, compare_separate_vectors


def build_verdict(
    states: Sequence[SeparateVectorState], *, writer_at_work: bool = False
) -> Verdict:
    """Pass if every separate vector store has exactly the vectors of its build.

    Args:
        writer_at_work: whether another run may be between two steps of a write.
    """
    offenders = [
        (state.generation.number, "vectors differ from the catalog", document)
        for state in states
        for document in sorted(state.differing)
    ]
    offenders += [
        (state.generation.number, "vectors whose length is not 1", str(state.unsound))
        for state in states
        if state.unsound
    ]
    # A store that is still being filled does not answer searches yet.
    filling = all(state.generation.vectors_beside == "filling" for state in states)
    severity: Severity = "WARN" if writer_at_work or filling else "ERROR"
    builds = format_count(len(states), "build")
    return Verdict(
        passed=not offenders,
        description=(
            f"{format_count(len(offenders), 'difference')} in the separate vector stores of"
            f" {builds}"
            if offenders
            else f"the separate vector stores of {builds} are equal to the catalog"
        ),
        compared=(
            Compared("builds that differ", 0, sum(not state.is_healthy for state in states)),
            *(
                Compared(
                    f"documents that differ in generation {state.generation.number}",
                    0,
                    len(state.differing),
                )
                for state in states
            ),
        ),
        columns=("generation", "fault", "which"),
        offenders=tuple(offenders),
        severity=severity,
        mend="run `rag-assets sync TENANT --repair` to copy the vectors again from the lake",
    )


@tenant_check(
    "search_index",
    "vectors_beside",
    (
        "For every build that is searched in pgvector, pgvector has exactly the vectors of the "
        "current versions, with the access scopes of the catalog and with norm 1."
    ),
    nightly=True,
    repairable=True,
    against_catalog=True,
)
def vectors_beside_check(context: CheckContext) -> Verdict:
    """Compare every separate vector store with the catalog.

    If one differs, compare again while no other process writes.
    """
    try:
        states = compare_separate_vectors(context.tenant)
        if all(state.is_healthy for state in states):
            return build_verdict(states)
        with context.exclude_writers("comparing vectors") as tenant:
            if tenant is not None:
                return build_verdict(compare_separate_vectors(tenant))
        return build_verdict(states, writer_at_work=True)
    except VectorsUnavailable as error:
        return Verdict(False, error.message, (), severity="WARN", mend=error.hint or "")
