"""Trial of a workspace under constant pushes, with the daemon and the change watcher after `up`.

    python -m benchmarks.pushing page --seconds 300       a page that is saved every second
    python -m benchmarks.pushing file --seconds 300       a file whose content is put every second
    python -m benchmarks.pushing file --kills             the same while processes are killed
    python -m benchmarks.pushing bulk --records 50000     lines, with 50 edits meanwhile and kills

The embedder is the deterministic one: its vectors have no meaning, and all searches are by words.
The exit code is 1 if any condition fails (see `find_faults` in both modules).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import (
    CLI,
    PROJECT,
    create_parser,
    describe_machine,
    report_result,
)
from benchmarks.pushing import bulk, changing_page
from benchmarks.pushing.site import SOURCE, Service, Workspace
from benchmarks.saved_to_searchable import compute_cpu_since, read_cpu, run_stack
from benchmarks.servers import benchmark_servers, make_home
from rag_assets.cli.session import Session
from rag_assets.client import Client
from rag_assets.common.settings import Settings
from rag_assets.runtime.stack import LocalStack
from rag_assets.storage.blobs.store import open_blobs

WORK = PROJECT / ".local" / "benchmark-pushing"
TENANT = "wiki"
_KILLS = {8: "run", 16: "service", 24: "daemon", 32: "run", 40: "watcher"}
_VICTIMS = ("run", "service", "daemon", "service", "run", "watcher", "service", "run", "service")
_KILLS_WHILE_CHANGING = {20 + 30 * at: victim for at, victim in enumerate(_VICTIMS)}


def main() -> None:
    """Run a trial and save the result."""
    parser = create_parser(__doc__, work=WORK)
    parser.add_argument("trial", choices=("page", "file", "bulk"))
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--edits", type=int, default=50)
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two edits")
    parser.add_argument(
        "--kills", action="store_true", help="kill processes in the trials page and file"
    )
    parser.add_argument("--no-kills", action="store_true", help="kill nothing in the trial bulk")
    parser.add_argument("--name", help="name of the result file")
    arguments = parser.parse_args()
    before = describe_machine()
    with open_workspace(arguments.work) as (pushed_workspace, meter):
        cpu = read_cpu(meter)
        if arguments.trial != "bulk":
            kills = _KILLS_WHILE_CHANGING if arguments.kills else {}
            trial = changing_page.run_trial(
                pushed_workspace, arguments.seconds, kind=arguments.trial, kills=kills
            )
            results = changing_page.build_result(trial)
        else:
            kills = {} if arguments.no_kills else _KILLS
            plan = bulk.BulkPlan(arguments.records, arguments.edits, arguments.every, 5.0, kills)
            results = bulk.build_result(plan, bulk.run_trial(pushed_workspace, plan))
        # Killed processes have no CPU figures.
        alive = {name: pid for name, pid in meter.items() if psutil.pid_exists(pid)}
        results["cpu"] = compute_cpu_since(cpu, alive)
    print(json.dumps(results))
    name = arguments.name or f"pushing-{arguments.trial}"
    report_result(name, f"pushing: {arguments.trial}", before, {"rounds": 1, **results})
    sys.exit(1 if results["faults"] else 0)


@contextmanager
def open_workspace(work: Path) -> Iterator[tuple[Workspace, Mapping[str, int]]]:
    """Start `rag-assets up` and the service; yield a workspace, and the pids by name."""
    home = work / "home"
    entry: dict[str, Any] = {
        "id": TENANT,
        "profile": "workspace",
        "sources": [{"name": SOURCE, "type": "records"}],
        "embedder": {"provider": "deterministic", "dimensions": 384},
    }
    make_home(home, [entry])
    with benchmark_servers(work) as servers:
        servers.use_home(home, "pushing")
        stack = LocalStack(Settings.from_environment())
        with run_stack() as pids, Session() as session:
            created = ("tokens", "create", TENANT, "--principal", "app", "--role", "admin")
            process = subprocess.run(
                [*CLI, *created, "--json"], check=True, capture_output=True, text=True
            )
            service = Service(home / "service.log")
            service.start()
            try:
                token = str(json.loads(process.stdout)["token"])
                with Client(service.url, token) as client:
                    yield (
                        Workspace(
                            TENANT,
                            client,
                            service,
                            session.catalog,
                            session.instance,
                            session.store,
                            {"daemon": stack.dagster.daemon, "watcher": stack.watcher.process},
                            token,
                            open_blobs(Settings.from_environment()),
                        ),
                        {**servers.pids, **pids},
                    )
            finally:
                service.kill()


if __name__ == "__main__":
    main()
