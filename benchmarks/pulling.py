"""Measure time and memory of pulling records from another database, each step a command.

    python -m benchmarks.pulling                 100,000 pages of two blocks
    python -m benchmarks.pulling --rows 200000

The application's database is on the same Postgres server. Each step is a separate process: its
memory is its maximum resident set size.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.measure import CLI, PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import Servers, benchmark_servers, make_home

WORK = PROJECT / ".local" / "benchmark-pulling"
_EDITS = "UPDATE pages SET title = title || '!', updated_at = now() WHERE id <= 1000"
_PAGES = """
CREATE TABLE pages (id int PRIMARY KEY, title text, updated_at timestamptz);
CREATE TABLE blocks (id int PRIMARY KEY, page int, body text);
INSERT INTO pages SELECT n, 'Page ' || n, now() - interval '30 days' + n * interval '10 s'
    FROM generate_series(1, {rows}) n;
INSERT INTO blocks SELECT n, n / 2 + 1, 'Block ' || n || repeat(' of words that say little', 12)
    FROM generate_series(0, {rows} * 2 - 1) n;
CREATE INDEX ON blocks (page);
CREATE INDEX ON pages (updated_at);
ANALYZE;
"""
_QUERY = """
SELECT p.id, p.title, p.updated_at, (SELECT json_agg(json_build_object('block_id', b.id::text,
    'type', 'paragraph', 'text', b.body) ORDER BY b.id) FROM blocks b WHERE b.page = p.id) AS blocks
FROM pages p
"""


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="pulling", work=WORK)
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    before = describe_machine()
    home = arguments.work / "home"
    with benchmark_servers(arguments.work) as servers:
        steps = measure(servers, home, arguments.rows)
    figures = {"rows": arguments.rows, "steps": steps}
    report_result(arguments.name, "pulled records", before, figures)


def measure(servers: Servers, home: Path, rows: int) -> dict[str, dict[str, Any]]:
    """Pull all rows, no changes, edits and deletions; return the cost of each step."""
    application = servers.create_database("application")
    _execute(application, _PAGES.format(rows=rows))
    source = {"name": "app", "type": "sql", "url": "$APPLICATION", "queries": {"page": _QUERY}}
    local = {"provider": "local"}
    tenant = {"id": "wiki", "profile": "workspace", "embedder": local, "sources": [source]}
    make_home(home, [tenant])
    servers.use_home(home, "catalog", APPLICATION=application)
    steps = {"all": _pull(), "nothing": _pull()}
    _execute(application, _EDITS)
    steps |= {"1,000 edits": _pull(), "all keys": _pull("--keys")}
    _execute(application, "DELETE FROM pages WHERE id % 10 = 0")
    steps["a tenth is gone"] = _pull("--keys")
    return steps


def _execute(url: str, statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements)


def _pull(*options: str) -> dict[str, Any]:
    command = (*CLI, "workspace", "pull", "wiki", "--json")
    began = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen([*command, *options], stdout=out, cwd=PROJECT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        output = out.read()
    if process.returncode:
        sys.exit(f"the pull failed with {process.returncode}: {output.decode()}")
    [report] = json.loads(output)["sources"]
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "pull_seconds": round(report["seconds"], 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "most_resident_mib": round(used.ru_maxrss / 1024, 1),
        **{name: report[name] for name in ("rows", "stored", "removed", "held")},
    }


if __name__ == "__main__":
    main()
