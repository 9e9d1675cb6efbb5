"""Measure memory and time of concurrent uploads to `rag-assets serve` in a process of its own.

    python -m benchmarks.uploads                   16 files of 50 MiB, of two tenants
    python -m benchmarks.uploads --files 4 --megabytes 10

Each file is sent over a socket as fast as it is accepted. The service's memory (USS) is sampled
continuously: its value before, and the peak of its growth.
"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil

from benchmarks.measure import CLI, PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import benchmark_servers, make_home, run_service

WORK = PROJECT / ".local" / "benchmark-uploads"
TENANTS = ("first", "second")
_LINE = b"A line of a long file, as people write them.\n"


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="uploads", work=WORK)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--megabytes", type=int, default=50)
    arguments = parser.parse_args()
    before = describe_machine()
    home = arguments.work / "home"
    make_home(home)
    with benchmark_servers(arguments.work) as servers:
        servers.use_home(home, "uploads")
        tokens = [_create_tenant(tenant) for tenant in TENANTS]
        with run_service(home / "service.log") as (port, pid):
            _upload(port, tokens[0], 0, 1 << 20)  # loads what the first upload needs
            results = measure_uploads(pid, port, tokens, arguments.files, arguments.megabytes << 20)
    report_result(arguments.name, "uploads at once", before, results)


def measure_uploads(
    pid: int, port: int, tokens: list[str], files: int, size: int
) -> dict[str, Any]:
    """Upload files concurrently; return statuses, seconds, and memory of the service."""
    process = psutil.Process(pid)
    began_with = process.memory_full_info().uss
    peak, ended = began_with, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.02):
            peak = max(peak, process.memory_full_info().uss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    with ThreadPoolExecutor(files) as pool:
        statuses = list(
            pool.map(lambda n: _upload(port, tokens[n % len(tokens)], n + 1, size), range(files))
        )
    seconds = time.perf_counter() - began
    ended.set()
    watcher.join()
    return {
        "files": files,
        "mib_each": size >> 20,
        "statuses": {str(status): statuses.count(status) for status in sorted(set(statuses))},
        "seconds": round(seconds, 2),
        "mib_a_second": round(files * size / seconds / (1 << 20), 1),
        "service_mib_before": round(began_with / (1 << 20), 1),
        "service_mib_more_at_most": round((peak - began_with) / (1 << 20), 1),
    }


def _upload(port: int, token: str, number: int, size: int) -> int:
    """Send a file with distinct content; return the status of the answer."""
    first = b"file %d\n" % number
    lines = (size - len(first)) // len(_LINE)
    length = len(first) + lines * len(_LINE)
    begin = (
        b'--bound\r\nContent-Disposition: form-data; name="file"; filename="%d.txt"\r\n\r\n'
        % number
    )
    end = b"\r\n--bound--\r\n"
    head = (
        "POST /rag/uploads HTTP/1.1\r\nHost: service.example\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\n"
        "Content-Type: multipart/form-data; boundary=bound\r\n"
        f"Content-Length: {len(begin) + length + len(end)}\r\n\r\n"
    ).encode()
    piece = _LINE * 4_000
    with socket.create_connection(("127.0.0.1", port), timeout=600) as connection:
        connection.sendall(head + begin + first)
        for _ in range(lines // 4_000):
            connection.sendall(piece)
        connection.sendall(_LINE * (lines % 4_000) + end)
        received = b""
        while b"\r\n" not in received:
            received += connection.recv(65_536)
    return int(received.split()[1])


def _create_tenant(tenant: str) -> str:
    """Create a tenant that accepts uploads; return an admin's token."""
    _run("tenants", "add", tenant, "--uploads", "--json")
    answer = _run("tokens", "create", tenant, "--role", "admin", "--json")
    return str(json.loads(answer)["token"])


def _run(*arguments: str) -> str:
    return subprocess.run(
        [*CLI, *arguments], cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    main()
