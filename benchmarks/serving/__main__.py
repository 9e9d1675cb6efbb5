"""Measure the service under load, and bare Elasticsearch through its official client.

    python -m benchmarks.serving                     2,000 and 16,000 chunks; eight minutes, the
                                                     first time some more for the model
    python -m benchmarks.serving --large             50,000 chunks as well
    python -m benchmarks.serving --rounds 1 --only service-hybrid --name trial

A separate process makes the load (service_load.py, bare_load.py; wrk if it is installed). The
service and bare Elasticsearch alternate within each round. CPU is reported by process and request:
unlike times, it is valid on a busy machine; `elsewhere` is the CPU of other processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.measure import PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import benchmark_servers
from benchmarks.serving.cases import LoadCase, list_cases
from benchmarks.serving.installation import ServingInstallation
from benchmarks.serving.runner import Runner

WORK = PROJECT / ".local" / "benchmark-serving"


def measure(runner: Runner, cases: Sequence[LoadCase], rounds: int) -> list[dict[str, Any]]:
    """Run every case, round after round; cases without `every_round` run in the first only."""
    runner.warm_up()
    return [
        runner.run(case)
        for number in range(rounds)
        for case in cases
        if number == 0 or case.every_round
    ]


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="serving", work=WORK)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=800, help="per case and round")
    parser.add_argument("--large", action="store_true", help="measure 50,000 chunks as well")
    parser.add_argument("--only", default="", help="run cases whose names start with this")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of the service")
    arguments = parser.parse_args()
    tenants = ["bench", "small", *(["large"] if arguments.large else [])]
    cases = [case for case in list_cases(tenants) if case.name.startswith(arguments.only)]
    with benchmark_servers(arguments.work, fresh=False) as servers:
        installation = ServingInstallation(servers, arguments.work, tenants)
        chunks = installation.index_tenants()
        before = describe_machine()
        with installation.run_service(arguments.workers) as service:
            runner = Runner(servers, installation, service, arguments.requests)
            runs = measure(runner, cases, arguments.rounds)
    figures = {
        "rounds": arguments.rounds,
        "requests": arguments.requests,
        "workers": arguments.workers,
        "chunks": chunks,
        "runs": runs,
    }
    report_result(arguments.name, "serving", before, figures)


if __name__ == "__main__":
    main()
