"""Records that processes share."""

from __future__ import annotations

import os
import signal
import time

from rag_assets.api.rate_limits import SharedTable

NUMBER = 8


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def test_a_record_is_there_until_it_expires_or_is_removed() -> None:
    table = SharedTable(100, NUMBER)
    with table.lock(b"ada", 0.0) as record:
        assert not record.is_live
        assert record.read() == bytes(NUMBER)
        record.write(b"12345678", until=10.0)
    with table.lock(b"ada", 9.0) as record:
        assert record.is_live
        assert record.read() == b"12345678"
    with table.lock(b"eve", 9.0) as record:
        assert not record.is_live
    with table.lock(b"ada", 10.0) as record:
        assert not record.is_live
        assert record.read() == bytes(NUMBER)
    with table.lock(b"ada", 9.0) as record:
        record.remove()
    with table.lock(b"ada", 9.0) as record:
        assert not record.is_live


def test_where_places_are_taken_the_record_that_expires_first_gives_way() -> None:
    table = SharedTable(8, NUMBER)
    for at in range(9):
        with table.lock(b"%d" % at, 0.0) as record:
            record.write(bytes(NUMBER), until=100.0 - at)
    there = []
    for at in range(9):
        with table.lock(b"%d" % at, 0.0) as record:
            there.append(record.is_live)
    # The eighth expired first when the ninth came.
    assert there == [True] * 7 + [False, True]


def test_processes_count_together() -> None:
    table, children, each = SharedTable(100, NUMBER), 4, 2_000
    pids = []
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            for _ in range(each):
                with table.lock(b"ada", 0.0) as record:
                    counted = number(record.read()) + 1
                    record.write(counted.to_bytes(NUMBER, "little"), until=1.0)
            os._exit(0)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * children
    with table.lock(b"ada", 0.0) as record:
        assert number(record.read()) == children * each


def test_a_killed_process_locks_nothing() -> None:
    table = SharedTable(100, NUMBER)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with table.lock(b"ada", 0.0):
            os.write(writer, b".")
            time.sleep(60)
        os._exit(0)
    assert os.read(reader, 1) == b"."
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    began = time.monotonic()
    with table.lock(b"ada", 0.0) as record:
        assert not record.is_live
    assert time.monotonic() - began < 5
    os.close(reader)
    os.close(writer)
