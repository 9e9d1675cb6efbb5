"""canary: verifies that the embedder still returns its first vectors."""

from collections.abc import Iterator

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.models.embedding.vectors import PROBES
from rag_assets.pipeline.canary import FRESH, CanaryResult, CanaryTarget, run_canary

_FIRST_WORDS = 40


def build_verdict(result: CanaryResult) -> Verdict:
    """Pass if no probe's vector moved too far; warn if the embedder did not respond."""
    moved = [at for at, distance in enumerate(result.distances) if distance > result.limit]
    known = len(result.distances)
    return Verdict(
        passed=result.passed and result.error is None,
        description=_describe(result),
        compared=(
            Compared(f"probes that moved by at most {result.limit:g}", known, known - len(moved)),
        ),
        columns=("probe", "cosine distance"),
        offenders=tuple(
            (f"{PROBES[at][:_FIRST_WORDS]}…", round(result.distances[at], 6)) for at in moved
        ),
        severity="WARN" if result.passed else "ERROR",
        notes=dict(_iter_notes(result)),
    )


@tenant_check(
    "embeddings",
    "canary",
    (
        "The vectors of a few fixed texts, embedded daily, equal the first vectors, so the "
        "provider has not changed the model. The daily job records new and failed results; the "
        "check calls the embedder only if the last answer is older than a day."
    ),
)
def canary_check(context: CheckContext) -> Verdict:
    """Compare the embedder's last answer with its first.

    If the last answer is older than a day, the embedder is called again first.
    """
    ctx = context.tenant
    target = CanaryTarget.from_tenant(ctx.ref, ctx.tenant, ctx.embedder)
    [seen] = run_canary(ctx.catalog, [target], fresh=FRESH)
    return build_verdict(seen)


def _describe(result: CanaryResult) -> str:
    if not result.passed:
        return (
            f"the provider changed the model behind its name: {result.embedder_id} answers a fixed"
            f" text {max(result.distances):.4f} away from its first answer, more than"
            f" {result.limit:g}; vectors from before and after the change are not comparable."
            " Set a new `revision`, such as today's date, for the tenant's embedder and run"
            " `rag-assets sync TENANT`: this makes a new build with the present model;"
            f" `rag-assets plan {result.ref.id}` shows its price"
        )
    if result.error is not None:
        return f"the embedder did not respond: {result.error}"
    if not result.distances:
        return "the first answer is stored; later answers are compared with it"
    return f"no probe's vector moved by more than {max(result.distances):.6f}"


def _iter_notes(result: CanaryResult) -> Iterator[tuple[str, str | float]]:
    yield "embedder", result.embedder_id
    if result.since is not None and result.at is not None:
        yield "stored", f"{result.since:%Y-%m-%d %H:%M} UTC"
        yield "measured", f"{result.at:%Y-%m-%d %H:%M} UTC"
    if result.distances:
        yield "largest distance", round(max(result.distances), 6)
    if result.error is not None:
        yield "not measured now", result.error
