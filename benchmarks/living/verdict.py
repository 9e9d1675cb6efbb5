"""Conditions on answers given while builds were published and documents edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from benchmarks.living.documents import STEADY, Deletion, Edit
from benchmarks.living.load import Answer
from rag_assets.pipeline.context import TenantContext

EDIT_SECONDS = 60.0
"""Time after which every answer must contain an edit."""
MOST_SLOWER = 3.0
"""Maximum ratio of p95 during the trial to p95 at rest."""

RangesByBuild = Mapping[int, Mapping[str, frozenset[tuple[int, int]]]]
"""Ranges of the passages of steady documents: by build, by URI."""


@dataclass(frozen=True, slots=True)
class Move:
    """A publication or a rollback.

    Attributes:
        kind: "publish", "rollback" or "rollback --now".
        began, ended: start and end of its command, in seconds since the epoch.
        generation: the build that answered at its end.
        waited: messages of earlier attempts that another writer blocked.
    """

    kind: str
    began: float
    ended: float
    generation: int
    waited: tuple[str, ...] = ()


def find_faults(
    answers: Sequence[Answer],
    moves: Sequence[Move],
    edits: Sequence[Edit],
    deletions: Sequence[Deletion],
    places: RangesByBuild,
) -> dict[str, list[str]]:
    """Return the violated conditions, each with its examples."""
    examples_by_fault = {
        "no answer": [f"{a.mode}: {a.failure}" for a in answers if a.failure is not None],
        "empty answer": [_describe(a) for a in answers if a.failure is None and not a.passages],
        "passage is not in its build": [*_find_foreign_passages(answers, places)],
        "answer from another build than the published one": [*_find_stale_builds(answers, moves)],
        "deleted document found": [*_find_deleted(answers, deletions)],
        "outdated edition after 60 seconds": [*_find_outdated(answers, edits)],
        "edit took over 60 seconds": [
            f"{e.uri}, edition {e.edition}" for e in edits if _compute_duration(e) > EDIT_SECONDS
        ],
        "deletion without effect": [d.uri for d in deletions if d.gone_at is None],
    }
    return {fault: examples for fault, examples in examples_by_fault.items() if examples}


def _describe(answer: Answer) -> str:
    return f"{answer.mode}, generation {answer.generation}, at {answer.due_at:.2f}"


def _find_foreign_passages(answers: Sequence[Answer], places: RangesByBuild) -> Iterator[str]:
    for answer in answers:
        ranges = places.get(answer.generation or 0)
        if ranges is None:
            continue
        for passage in answer.passages:
            if passage.uri in ranges and (passage.start, passage.end) not in ranges[passage.uri]:
                yield f"{_describe(answer)}: {passage.uri} from {passage.start} to {passage.end}"


def _find_stale_builds(answers: Sequence[Answer], moves: Sequence[Move]) -> Iterator[str]:
    """Yield answers between two moves that another build than the published one gave."""
    for move, after in zip(moves, [*moves[1:], None], strict=True):
        until = float("inf") if after is None else after.began
        for answer in answers:
            is_between = move.ended < answer.due_at and answer.due_at + answer.seconds < until
            if is_between and answer.generation not in {move.generation, None}:
                yield f"{_describe(answer)}: {move.generation} was published at {move.ended:.2f}"


def _find_deleted(answers: Sequence[Answer], deletions: Sequence[Deletion]) -> Iterator[str]:
    gone_at = {d.uri: d.gone_at for d in deletions if d.gone_at is not None}
    for answer in answers:
        for uri in {passage.uri for passage in answer.passages} & gone_at.keys():
            if answer.due_at > gone_at[uri]:
                yield f"{_describe(answer)}: {uri}, gone at {gone_at[uri]:.2f}"


def _find_outdated(answers: Sequence[Answer], edits: Sequence[Edit]) -> Iterator[str]:
    saved: dict[str, list[tuple[float, int]]] = {}
    for edit in edits:
        saved.setdefault(edit.uri, []).append((edit.saved_at, edit.edition))
    for answer in answers:
        for passage in answer.passages:
            if passage.edition is None:
                continue
            due = [e for at, e in saved.get(passage.uri, ()) if at + EDIT_SECONDS < answer.due_at]
            if due and passage.edition < max(due):
                yield f"{_describe(answer)}: {passage.uri}, edition {passage.edition} of {max(due)}"


def _compute_duration(edit: Edit) -> float:
    return float("inf") if edit.found_at is None else edit.found_at - edit.saved_at


def compute_latencies(answers: Sequence[Answer]) -> dict[str, float]:
    """Return percentiles of the answers' latency, in milliseconds."""
    seconds = [answer.seconds for answer in answers]
    cuts = quantiles(seconds, n=100, method="inclusive")
    percentiles = {"p50": median(seconds), "p95": cuts[94], "p99": cuts[98], "max": max(seconds)}
    return {name: round(1_000 * value, 1) for name, value in percentiles.items()}


def read_places(ctx: TenantContext) -> RangesByBuild:
    """Return the ranges of all passages of steady documents, by build and URI.

    Args:
        ctx: context of the tenant.
    """
    ranges: dict[int, Mapping[str, frozenset[tuple[int, int]]]] = {}
    for build in ctx.catalog.generations.live(ctx.ref.id):
        ranges_by_uri: dict[str, set[tuple[int, int]]] = {}
        for entry in ctx.store.entries.stored(build.index_name, ctx.owner(build)):
            uri, start, end = (entry.fields[name] for name in ("uri", "start", "end"))
            if uri.startswith(STEADY):
                ranges_by_uri.setdefault(uri, set()).add((start, end))
        ranges[build.number] = {
            uri: frozenset(uri_ranges) for uri, uri_ranges in ranges_by_uri.items()
        }
    return ranges
