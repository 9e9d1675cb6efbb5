import json
import logging
import os
from collections.abc import Iterator
from contextlib import closing
from unittest.mock import Mock

import pytest

from rag_assets.api.log_lines import LOGGER, BackgroundLogHandler, JsonLineFormatter
from rag_assets.mcp.server import build_server
from rag_assets.mcp.tools import Knowledge

MOST = 50


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def writing_to(descriptor: int) -> BackgroundLogHandler:
    handler = BackgroundLogHandler(descriptor, MOST)
    handler.setFormatter(JsonLineFormatter(str))
    return handler


def record(**named: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": LOGGER.name, "msg": "request", "levelname": "INFO", **named}
    )


def test_lines_come_in_order_with_what_was_named_and_nothing_else(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    with closing(writing_to(writer)) as handler:
        for number in range(3):
            handler.emit(record(ms=number, tenant="acme", query="who may?"))
    lines = [json.loads(line) for line in os.read(reader, 65_536).splitlines()]
    assert [line["ms"] for line in lines] == [0, 1, 2]
    assert {*lines[0]} == {"at", "level", "event", "ms", "tenant"}


def test_records_of_libraries_are_written_without_their_arguments(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    with closing(writing_to(writer)) as handler:
        failure = (ValueError, ValueError("the text of a document"), None)
        handler.emit(
            record(name="mcp.server", msg="%r failed\n…", args=("rag_x",), exc_info=failure)
        )
    [line] = [json.loads(line) for line in os.read(reader, 65_536).splitlines()]
    logged = (line["logger"], line["event"], line["error"])
    assert logged == ("mcp.server", "%r failed", "ValueError")
    assert "document" not in str(line)
    assert "rag_x" not in str(line)


def test_a_server_for_agents_leaves_logging_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    build_server(Knowledge(Mock(), Mock()), Mock())
    assert logging.getLogger().handlers == []


def test_an_unread_pipe_delays_nothing_and_lost_lines_are_counted(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    handler = writing_to(writer)
    # Far more than the pipe, the lines that are being written and those that wait can hold.
    sent = 5_000
    for number in range(sent):
        handler.emit(record(ms=number, reason="x" * 200))
    written = dropped = 0
    with os.fdopen(os.dup(reader), "rb") as stream:
        while written + dropped < sent:
            line = json.loads(stream.readline())
            written += "ms" in line
            dropped += line.get("lines", 0)
    handler.close()
    assert written + dropped == sent
    assert written > 0
    assert dropped > 0
