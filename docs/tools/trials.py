"""Tables of trials under load: a living index, constant pushes, and moved subtrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docs.tools.tables import describe_origin, format_seconds, format_table

_KINDS = {
    "publish": "publications",
    "rollback": "rollbacks",
    "rollback --now": "rollbacks with `--now`",
}


def build_living_table(result: Mapping[str, Any]) -> str:
    """Return latencies at rest and during the trial, durations of moves, and every fault."""
    rows = [
        [name, *(f"{result[part][at]:.1f} ms" for at in ("p50", "p95", "p99", "max"))]
        for name, part in (("at rest", "at_rest_ms"), ("during the trial", "moving_ms"))
    ]
    columns = [f"{result['rate']:.0f} searches a second", "p50", "p95", "p99", "longest"]
    moves = [
        [name, str(len(seconds)), format_seconds(min(seconds)), format_seconds(max(seconds))]
        for kind, name in _KINDS.items()
        if (seconds := [m["seconds"] for m in result["moves"] if m["kind"] == kind])
    ]
    edits = result["edit_seconds"]
    counted = (
        f"{result['questions']:,} questions in all modes, answered by {len(result['generations'])}"
        f" builds; {result['edits']} edits, found after {format_seconds(edits['median'])} (median),"
        f" {format_seconds(edits['max'])} at most; {result['deletions']} deletions. p95 was"
        f" {result['p95_ratio']:.2f} times the p95 at rest."
    )
    faults = result["faults"]
    violations = "".join(
        f"- {fault}: {count}, as in {example}\n" for fault, (count, example, *_) in faults.items()
    )
    verdict = f"Violated:\n\n{violations}" if faults else "All conditions held.\n"
    return (
        f"{format_table(columns, rows)}\n"
        f"{format_table(['', 'how many', 'shortest', 'longest'], moves)}\n"
        f"{counted}\n\n{verdict}\n{describe_origin(result)}"
    )


def build_changing_page_table(result: Mapping[str, Any]) -> str:
    """Return the trial of a page or a file that is saved every second."""
    latency = result["listed_to_found"]
    row = [
        *(str(result[name]) for name in ("pushed", "listed", "found")),
        *(format_seconds(latency[name]) for name in ("p50", "max")),
        format_seconds(result["oldest_found"]),
    ]
    columns = [
        *("versions saved", "listed by a run", "found by a search"),
        *("listed → found, p50", "longest", "greatest age of a found version"),
    ]
    killed = result.get("killed")
    kills = f"{_describe_kills(killed)}.\n\n" if killed else ""
    return (
        f"{format_table(columns, [row])}\n{kills}{_describe_faults(result)}\n"
        f"{describe_origin(result)}"
    )


def build_bulk_table(result: Mapping[str, Any]) -> str:
    """Return the trial of many pushed records, with edits and kills."""
    row = [
        f"{result['records']:,}",
        format_seconds(result["pushed_seconds"]),
        format_seconds(result["indexed_seconds"]),
        str(result["edits"]),
        *(format_seconds(result[name]) for name in ("p50", "p95", "max")),
        f"{result['overtaken_p50']:,}",
    ]
    columns = [
        *("lines", "pushed in", "all indexed after", "edits"),
        *("edit → found, p50", "p95", "longest", "lines an edit overtook, p50"),
    ]
    counted = (
        f"{_describe_kills(result['killed'])}. `queue_depth` was recounted at {result['moments']}"
        " moments,"
        f" and was {result['deepest']:,} at most.\n"
    )
    return (
        f"{format_table(columns, [row])}\n{counted}\n{_describe_faults(result)}\n"
        f"{describe_origin(result)}"
    )


def build_moves_table(result: Mapping[str, Any]) -> str:
    """Return the durations of moving a subtree."""
    row = [
        f"{result['records']:,} on {result['pages']:,}",
        str(len(result["seconds"])),
        *(format_seconds(result[name]) for name in ("p50", "max", "client_cpu", "postgres_cpu")),
    ]
    columns = ["records, on pages", "moves", "p50", "longest", "CPU of the client", "of Postgres"]
    verdict = (
        "Each move was in force when it was answered."
        if result["holds"]
        else "Not every move was in force when it was answered."
    )
    return (
        f"{format_table(columns, [row])}\n{verdict}\n\n"
        f"{_build_service_moves_table(result)}{describe_origin(result)}"
    )


def _build_service_moves_table(result: Mapping[str, Any]) -> str:
    """Return the durations of moves through the service, and of the searches that followed."""
    service_moves = result["asked"]
    names = {
        "move": "`PUT /rag/tree/…`",
        "found": "next question of a caller who gained access",
        "hidden": "next question of a caller who lost access",
    }
    columns = [
        f"through the service, {service_moves['records']:,} indexed records",
        "p50",
        "longest",
    ]
    rows = [
        [what, *(format_seconds(service_moves[name][at]) for at in ("p50", "max"))]
        for name, what in names.items()
    ]
    busy = f"Load average before these: {service_moves['load_average'][0]}."
    return f"{format_table(columns, rows)}\n{busy}\n\n"


def build_scopes_table(result: Mapping[str, Any]) -> str:
    """Return latencies for callers with few and with very many access scopes."""
    names = {
        "few": "10 scopes, all documents",
        "many": f"{result['scopes']:,} scopes, all documents",
        "few of many": f"10 of {result['scopes']:,} scopes",
    }
    rows = [
        [
            mode,
            *(f"{by[who]['p50']:.1f} / {by[who]['p95']:.1f} ms" for who in names),
            f"{result['p95_ratio'][mode]:.2f}",
        ]
        for mode, by in result["milliseconds"].items()
    ]
    columns = ["p50 / p95 of a question", *names.values(), "p95, ratio of the first two"]
    return f"{format_table(columns, rows)}\n{describe_origin(result)}"


def _describe_kills(killed: Sequence[str]) -> str:
    return f"Killed with `kill -9` meanwhile, in this order: {', '.join(killed) or 'nothing'}"


def _describe_faults(result: Mapping[str, Any]) -> str:
    faults = result["faults"]
    if not faults:
        return "All conditions held.\n"
    return "Violated: " + "; ".join(faults) + ".\n"
