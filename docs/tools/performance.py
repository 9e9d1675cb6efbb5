"""The tables of the performance page, from the benchmarks' results.

The page is written by hand; the text between `<!-- table NAME -->` and `<!-- end -->` is generated
here. A table without results is marked as such.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from docs.tools.code import (
    build_code_costs_table,
    build_code_scale_table,
    build_reported_edits_table,
)
from docs.tools.serving import build_graphs_table, build_serving_tables, compute_usual_latencies
from docs.tools.systems import (
    build_agent_costs_table,
    build_experience_costs_table,
    build_pgvector_table,
)
from docs.tools.tables import compute_median, describe_origin, format_seconds, format_table
from docs.tools.trials import (
    build_bulk_table,
    build_changing_page_table,
    build_living_table,
    build_moves_table,
    build_scopes_table,
)

PAGE = Path(__file__).resolve().parents[1] / "performance.md"
RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"

_MARKED = re.compile(r"(<!-- table ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_PHASES = {
    "cold": "first sync",
    "noop": "no changes",
    "edit": "1 % edited",
    "rename": "1 % renamed",
    "delete": "1 % deleted",
    "loss": "index lost, with `--repair`",
}
_FRAMEWORKS = {
    "chain": "rag-assets",
    "langchain": "LangChain",
    "llamaindex": "LlamaIndex",
    "cocoindex": "CocoIndex",
    "cocoindex-hnsw": "CocoIndex, HNSW",
}
_NOTHING = "–"
_OFFICE = "application/vnd.openxmlformats-officedocument."
_FORMATS = {
    "application/pdf": "PDF",
    f"{_OFFICE}wordprocessingml.document": "DOCX",
    f"{_OFFICE}presentationml.presentation": "PPTX",
    f"{_OFFICE}spreadsheetml.sheet": "XLSX",
    "message/rfc822": "EML",
    "text/csv": "CSV",
    "text/html": "HTML",
    "text/markdown": "Markdown",
    "text/plain": "plain text",
    "text/x-rst": "reStructuredText",
}

_Result = Mapping[str, Any]
_Costs = Mapping[str, Sequence[Mapping[str, Any]]]


def build_performance_page() -> str:
    """Return the page with up-to-date tables."""
    return _MARKED.sub(_fill_table, PAGE.read_text(encoding="utf-8"))


def _fill_table(mark: re.Match[str]) -> str:
    name = mark[2]
    if name == "summary":
        return f"{mark[1]}\n{_build_summary()}\n{mark[3]}"
    table = _TABLES[name]
    path = RESULTS / f"{name}.json"
    text = table(json.loads(path.read_text())) if path.exists() else "Not measured yet.\n"
    return f"{mark[1]}\n{text}\n{mark[3]}"


def _build_summary() -> str:
    """Return the figures that most readers look for, each with its command and date."""
    chain, serving, living = _read_result("chain"), _read_result("serving"), _read_result("living")
    saved, importing = (
        _read_result("saved-to-searchable"),
        _read_result("saved-to-searchable-import"),
    )
    tenants, upkeep = _read_result("many-tenants"), _read_result("upkeep")
    large = max(_read_result("graphs")["rows"], key=lambda row: row.get("entries", 0))
    files = f"{chain['files']:,} files"
    moves = [move["seconds"] for move in living["moves"] if move["kind"] == "publish"]
    edited = chain["files"] // 100
    rows = [
        *(
            (
                title,
                f"{format_seconds(compute_median(chain['costs'][phase], 'wall'))}",
                "make bench",
                chain,
            )
            for title, phase in (
                (f"a first sync of {files}, 13 MB", "cold"),
                (f"a sync of {files} without changes", "noop"),
                (f"a sync of {files}, {edited} edited", "edit"),
            )
        ),
        *(
            (
                f"a saved file until a search finds it{while_}",
                f"p50 {format_seconds(figures['p50'])}, p95 {format_seconds(figures['p95'])}",
                f"python -m benchmarks.saved_to_searchable{option}",
                figures,
            )
            for while_, option, figures in (
                ("", "", saved),
                (", while another tenant imports", " --import-files 6000", importing),
            )
        ),
        *(
            (
                f"a hybrid search over HTTP, {callers} at once",
                ", ".join(f"{p} {milliseconds:.0f} ms" for p, milliseconds in figures.items()),
                "make bench-serving",
                serving,
            )
            for callers, figures in compute_usual_latencies(serving).items()
        ),
        (
            f"a vector search in {large['entries']:,} entries, alone",
            f"p50 {1_000 * large['p50']:.0f} ms, recall@10 {large['recall']:.3f}",
            "python -m benchmarks.graphs",
            _read_result("graphs"),
        ),
        (
            "a publication of a build under searches",
            f"{format_seconds(min(moves))} to {format_seconds(max(moves))}",
            "python -m benchmarks.living",
            living,
        ),
        (
            f"a first sync of {tenants['tenants']:,} tenants of {tenants['files']} files",
            format_seconds(tenants["cold"]["wall"]),
            "python -m benchmarks.many_tenants",
            tenants,
        ),
        (
            f"the purge of a document among {upkeep['entries']:,} entries",
            format_seconds(upkeep["purge"]["inside"] or upkeep["purge"]["wall"]),
            "python -m benchmarks.upkeep",
            upkeep,
        ),
    ]
    cells = [
        [title, figure, f"`{command}`", result["taken"]] for title, figure, command, result in rows
    ]
    return format_table(["duration of", "measured", "command", "date"], cells)


def _read_result(name: str) -> _Result:
    result: _Result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return result


def _build_saved_table(result: _Result) -> str:
    cpu = sum(result["cpu"].values()) / result["trials"]
    row = [
        str(result["trials"]),
        format_seconds(result["p50"]),
        format_seconds(result["p95"]),
        format_seconds(result["max"]),
        format_seconds(cpu),
    ]
    columns = ["files saved", "p50", "p95", "longest", "CPU per file, all processes"]
    return f"{format_table(columns, [row])}\n{describe_origin({'rounds': 1, **result})}"


def _build_burst_table(result: _Result) -> str:
    row = [
        f"{result['burst']} within {result['spread_seconds']:.0f} seconds",
        *(format_seconds(result[name]) for name in ("p50", "p95", "max", "done_after_seconds")),
        format_seconds(result["cpu_per_change"]),
    ]
    by_process = ", ".join(
        f"{name} {cpu / result['burst']:.2f} s"
        for name, cpu in sorted(result["cpu"].items(), key=lambda item: -item[1])
    )
    columns = ["tenants edited, each once", "p50", "p95", "longest", "all after", "CPU per file"]
    table = format_table(columns, [row])
    return f"{table}\nCPU per file: {by_process}.\n\n{describe_origin({'rounds': 1, **result})}"


def _build_guidelines_table(result: _Result) -> str:
    alone, at_once = result["alone"], result["at_once"]
    stages = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in alone["stages"].items())
    ready = at_once["ready_seconds"]
    uploads = format_table(
        ["uploaded", "passages", "READY after", "by stage"],
        [
            ["one PDF", f"{alone['chunks']:,}", format_seconds(alone["ready_seconds"]), stages],
            [
                f"{at_once['files']} at once, to {at_once['projects']} projects",
                f"{at_once['chunks']:,}",
                f"{format_seconds(ready[0])} to {format_seconds(ready[-1])}",
                f"all after {format_seconds(at_once['seconds'])}",
            ],
        ],
    )
    spreads = (
        ("at rest", result["contexts_at_rest"]),
        ("while these are indexed", result["contexts_meanwhile"]),
    )
    contexts = format_table(
        ["contexts", "asked", "p50", "p95", "p99"],
        [
            [name, f"{of['contexts']:,}", *(f"{of[f'p{at}_ms']} ms" for at in (50, 95, 99))]
            for name, of in spreads
        ],
    )
    return f"{uploads}\n{contexts}\n{describe_origin({'rounds': 1, **result})}"


def _build_chain_table(result: _Result) -> str:
    costs: _Costs = result["costs"]
    rows = [_build_phase_row(costs, phase, name) for phase, name in _PHASES.items()]
    rows += [
        _build_phase_row(costs, "killed", "`kill -9` half-way"),
        _build_phase_row(costs, "kill", "the sync after the kill"),
        _build_phase_row(costs, "bare", "**bare Elasticsearch bulk**"),
        _build_phase_row(costs, "bare.graphs", "bare bulk, with graphs for small segments as well"),
    ]
    columns = ["phase", "as a user", "without imports", "CPU", "Elasticsearch CPU", "memory"]
    bare, cold = (
        compute_median(costs["bare"], "inside"),
        compute_median(costs["cold.inside"], "inside"),
    )
    wall, graphs = (
        compute_median(costs["cold"], "wall"),
        compute_median(costs["bare.graphs"], "inside"),
    )
    ratio = (
        f"{result['entries']:,} entries of {result['files']:,} files:"
        f" {result['entries'] / cold:,.0f} a second without imports,"
        f" {result['entries'] / bare:,.0f} in bare bulk. A first sync takes {wall / bare:.2f} times"
        f" as long as bare bulk ({cold / bare:.2f} without imports), and {wall / graphs:.2f} times"
        f" as long as bare bulk with graphs ({cold / graphs:.2f})."
    )
    return f"{format_table(columns, rows)}\n{ratio}\n\n{describe_origin(result)}"


def _build_phase_row(costs: _Costs, phase: str, name: str) -> list[str]:
    runs = costs.get(phase, [])
    inside = costs.get(f"{phase}.inside") or runs
    if not runs:
        return [name, *["–"] * 5]
    return [
        name,
        "–" if phase.startswith("bare") else format_seconds(compute_median(runs, "wall")),
        format_seconds(compute_median(inside, "inside"))
        if inside[0]["inside"] is not None
        else "–",
        format_seconds(compute_median(runs, "cpu")),
        format_seconds(median(cost["servers_cpu"]["elasticsearch"] for cost in runs)),
        "–" if phase.startswith("bare") else f"{compute_median(runs, 'peak_mb'):.0f} MB",
    ]


def _build_linear_table(result: _Result) -> str:
    small = json.loads((RESULTS / "chain.json").read_text())
    factor = result["files"] / small["files"]
    rows = []
    for phase, name in _PHASES.items():
        few, many = small["costs"][f"{phase}.inside"], result["costs"].get(f"{phase}.inside")
        if many:
            before, after = compute_median(few, "inside"), compute_median(many, "inside")
            memory = compute_median(many, "peak_mb")
            cells = [
                format_seconds(before),
                format_seconds(after),
                f"{after / before:.1f}",
                f"{memory:.0f} MB",
            ]
            rows.append([name, *cells])
    columns = [
        "phase, without imports",
        f"{small['files']:,} files",
        f"{result['files']:,} files",
        f"ratio ({factor:.0f} is linear)",
        "memory then",
    ]
    return f"{format_table(columns, rows)}\n{describe_origin(result)}"


def _build_rivals_table(result: _Result) -> str:
    by_name: Mapping[str, _Costs] = result["costs"]
    names = [name for name in _FRAMEWORKS if by_name.get(name, {}).get("cold")]
    programs = [_FRAMEWORKS[name] for name in names]
    compared = "\n".join(
        format_table(
            [head, *programs],
            [
                [title, *(cell(by_name[name], phase) for name in names)]
                for phase, title in _PHASES.items()
                if phase != "loss"
            ],
        )
        for head, cell in (
            ("seconds, as a user", _format_user_seconds),
            ("seconds, without imports", _format_inside_seconds),
            ("CPU seconds, program + servers", _format_cpu),
        )
    )
    facts = [
        ["entries", *(_format_entries(result, name) for name in names)],
        [
            "memory of a first sync",
            *(f"{compute_median(by_name[name]['cold'], 'peak_mb'):.0f} MB" for name in names),
        ],
        ["repairs a lost index", *(_describe_repair(by_name[name]) for name in names)],
    ]
    failures = "".join(
        f"{_FRAMEWORKS[name]} failed: {why}\n\n" for name, why in result["failures"].items()
    )
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return (
        f"{compared}\n{format_table(['', *programs], facts)}\n"
        f"{failures}{versions}. {describe_origin(result)}"
    )


def _format_user_seconds(costs: _Costs, phase: str) -> str:
    runs = _select_useful_runs(costs, phase)
    return f"{compute_median(runs, 'wall'):.1f}" if runs else _NOTHING


def _format_inside_seconds(costs: _Costs, phase: str) -> str:
    runs = _select_useful_runs(costs, phase)
    if not runs:
        return _NOTHING
    inside = costs.get(f"{phase}.inside") or runs
    return f"{compute_median(inside, 'inside'):.2f}"


def _select_useful_runs(costs: _Costs, phase: str) -> list[Mapping[str, Any]]:
    """Return runs that ended and restored lost entries: a run that does nothing is not fast."""
    return [cost for cost in costs.get(phase, []) if "wall" in cost and cost.get("restored", True)]


def _format_cpu(costs: _Costs, phase: str) -> str:
    runs = _select_useful_runs(costs, phase)
    if not runs:
        return _NOTHING
    servers = median(sum(cost["servers_cpu"].values()) for cost in runs)
    return f"{compute_median(runs, 'cpu'):.1f} + {servers:.1f}"


def _format_entries(result: _Result, name: str) -> str:
    if name == "chain":
        return f"{result['entries']:,}"
    return f"{result['costs'][name]['cold'][0]['entries']:,}"


def _describe_repair(costs: _Costs) -> str:
    lost = costs["loss"][0]
    if "restored" not in lost:
        return "yes, with `--repair`"
    return "yes" if lost["restored"] else "no, and reports no error"


def _build_parsing_table(result: _Result) -> str:
    rows = []
    for media_type, figures in result["formats"].items():
        rates = figures["per_cpu_second"]
        libraries = ", ".join(
            f"{name} {rates[name]:,.0f} ({ratio:.2f})"
            for name, ratio in figures["parser_to_library"].items()
        )
        name = f"{_FORMATS.get(media_type, media_type)}, {figures['unit']}"
        ours = (f"{rates['parser']:,.0f}", f"{rates['pool']:,.0f}")
        rows.append([name, libraries or "–", *ours])
    columns = [
        "per second of CPU",
        "library alone (parser / library)",
        "parser",
        "parser, scan and worker",
    ]
    return f"{format_table(columns, rows)}\n{describe_origin(result)}"


def _build_many_tenants_table(result: _Result) -> str:
    count = result["tenants"]
    rows = [
        [
            name,
            format_seconds(cost[wall]),
            format_seconds(cost["cpu"]),
            f"{1_000 * cost['cpu'] / count:.0f} ms",
        ]
        for name, phase, wall in (
            ("first sync of all", "cold", "wall"),
            ("a sync of all without changes", "noop", "wall"),
            ("a tick of the sensor `source_files`", "tick", "inside"),
            ("a night (job `detect_drift`)", "night", "inside"),
        )
        if (cost := result.get(phase))
    ]
    changes = ", ".join(format_seconds(seconds) for seconds in result["change_seconds"])
    memory = ", ".join(f"{name} {size:.0f} MB" for name, size in result["memory_mb"].items())
    columns = [f"{count:,} tenants of {result['files']} files", "wall", "CPU", "CPU per tenant"]
    return (
        f"{format_table(columns, rows)}\nThree changes were searchable after {changes}."
        f" Memory: {memory}.\n\n{describe_origin(result)}"
    )


def _build_upkeep_table(result: _Result) -> str:
    rows = [
        [
            name,
            format_seconds(cost["inside"] or cost["wall"]),
            format_seconds(cost["cpu"]),
            *(
                format_seconds(cost["servers_cpu"][server])
                for server in ("elasticsearch", "postgres")
            ),
            f"{cost['peak_mb']:,.0f} MB",
            *(f"{read:,.0f} MB" for read in (cost["read_mb"] or {}).values()),
        ]
        for name, cost in (("a night", result["night"]), ("a purge", result["purge"]))
    ]
    columns = [
        f"{result['entries']:,} entries of {result['documents']:,} documents",
        *("time", "CPU", "Elasticsearch CPU", "Postgres CPU", "memory"),
        *("read from files", "received"),
    ]
    sync, first = result.get("sync"), ""
    if sync is not None:
        most = f"{sync['peak_mb']:,.0f} MB"
        first = f"The first sync took {format_seconds(sync['wall'])} and {most} of memory.\n\n"
    return f"{format_table(columns, rows)}\n{first}{describe_origin(result)}"


def _build_throughput_tables(result: _Result) -> str:
    sent = [
        [
            f"{row['concurrency']}, {row['dimensions']:,} dimensions",
            f"{row['possible_per_second']:,.0f}",
            f"{median(row['texts_per_second']):,.0f}",
            f"{row['ratio']:.0%}",
        ]
        for row in result["concurrent"]
    ]
    columns = ["requests at once", "possible texts per second", "measured", "share"]
    tables = [format_table(columns, sent)]
    if limited := result.get("limited"):
        tables.append(
            f"With {limited['requests_per_minute']} requests a minute, {limited['requests']}"
            f" requests took {format_seconds(limited['seconds'])}, where"
            f" {format_seconds(limited['possible_seconds'])} are possible; in no sixty seconds did"
            " the"
            f" server see more than {limited['most_in_a_minute']}.\n"
        )
    if local := result.get("local"):
        rows = [
            [
                f"{row['words'] // 2} to {row['words']} words",
                f"{row['direct_per_second']:,.0f}",
                f"{row['embed_all_per_second']:,.0f}",
                f"{row['ratio']:.0%}",
            ]
            for row in local
        ]
        columns = ["shipped model, texts per second", "onnxruntime alone", "embed_all", "share"]
        tables.append(format_table(columns, rows))
    return "\n".join([*tables, describe_origin(result)])


_TABLES: Mapping[str, Callable[[_Result], str]] = {
    "saved-to-searchable": _build_saved_table,
    "saved-to-searchable-import": _build_saved_table,
    "saved-to-searchable-burst": _build_burst_table,
    "pushing-page": build_changing_page_table,
    "pushing-file-kills": build_changing_page_table,
    "pushing-bulk": build_bulk_table,
    "workspace-moves": build_moves_table,
    "workspace-scopes": build_scopes_table,
    "guidelines": _build_guidelines_table,
    "chain": _build_chain_table,
    "chain-20000": _build_linear_table,
    "rivals": _build_rivals_table,
    "many-tenants": _build_many_tenants_table,
    "upkeep": _build_upkeep_table,
    "parsing": _build_parsing_table,
    "throughput": _build_throughput_tables,
    "serving": build_serving_tables,
    "graphs": build_graphs_table,
    "pgvector": build_pgvector_table,
    "living": build_living_table,
    "agents": build_agent_costs_table,
    "experience-scale": build_experience_costs_table,
    "code-memory": build_code_costs_table,
    "code-scale": build_code_scale_table,
    "told-to-searchable": build_reported_edits_table,
}
