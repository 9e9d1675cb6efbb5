"""Rejection of malformed messages, with errors that never quote the message.

A message may contain a credential. For the responses to malformed messages, see
https://www.jsonrpc.org/specification.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import pydantic_core
from anyio.to_thread import run_sync
from mcp import MCPError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    Tool,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.server import MCPServer

MAX_MESSAGE_BYTES = 1_048_576
"""Maximum bytes of a message, several times the longest question."""


def refuse_other_arguments(tool: Tool) -> Tool:
    """Return a tool whose input schema refuses arguments that it does not name."""
    return tool.model_copy(
        update={"input_schema": tool.input_schema | {"additionalProperties": False}}
    )


_ERROR_TEXTS = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid request: one JSON-RPC request or notification is expected",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
}
_VERSION = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def find_rejection(message: bytes, version: str | None = None) -> JSONRPCError | None:
    """Return the response to an invalid JSON-RPC message; None if the message is valid.

    A batch is invalid since version 2025-06-18 of the protocol.

    Args:
        version: protocol version from the header.
    """
    if version is not None and not _VERSION.fullmatch(version):
        return _build_rejection(INVALID_REQUEST)
    try:
        raw = pydantic_core.from_json(message)
    except ValueError:
        return _build_rejection(PARSE_ERROR)
    try:
        read = jsonrpc_message_adapter.validate_python(raw, by_name=False)
    except ValidationError:
        return _build_rejection(INVALID_REQUEST)
    # A message with an invalid id would be treated as a notification, and never answered.
    if isinstance(read, JSONRPCNotification) and "id" in raw:
        return _build_rejection(INVALID_REQUEST)
    return None


def redact_error(error: Exception) -> MCPError:
    """Return an error for the agent without texts that could quote its message."""
    if isinstance(error, ValidationError):
        return MCPError(code=INVALID_PARAMS, message=_ERROR_TEXTS[INVALID_PARAMS])
    if not isinstance(error, MCPError):
        return MCPError(code=INTERNAL_ERROR, message="Internal error")
    code, data = error.error.code, error.error.data
    known = data.get("supported") if isinstance(data, dict) else None
    if known is None:
        return MCPError(code=code, message=_ERROR_TEXTS.get(code, "Internal error"))
    requested = str(cast("dict[str, Any]", data).get("requested"))
    valid = requested if _VERSION.fullmatch(requested) else ""
    return MCPError(
        code=code,
        message="Unsupported protocol version",
        data={"supported": known, "requested": valid},
    )


async def serve_stdio(server: MCPServer[None]) -> None:
    """Serve on standard input and output until the input ends, and reject malformed messages."""
    lines = _Messages()
    async with stdio_server(stdin=cast("anyio.AsyncFile[str]", lines)) as (read, write):

        async def answer(error: JSONRPCError) -> None:
            await write.send(SessionMessage(error))

        lines.answer = answer
        # The SDK does the same, but only with streams that it opens itself.
        lowlevel = server._lowlevel_server  # noqa: SLF001
        await lowlevel.run(read, write, lowlevel.create_initialization_options())


class _Messages:
    """An iterator over the messages on standard input, which rejects malformed lines.

    Attributes:
        answer: sends a rejection; must be set before reading starts.
    """

    answer: Callable[[JSONRPCError], Awaitable[None]]

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the valid messages, one per line; reject longer lines than MAX_MESSAGE_BYTES."""
        read = sys.stdin.buffer.readline
        while line := await run_sync(read, MAX_MESSAGE_BYTES + 1):
            if len(line) > MAX_MESSAGE_BYTES:
                while line and not line.endswith(b"\n"):
                    line = await run_sync(read, MAX_MESSAGE_BYTES)
                await self.answer(_build_rejection(INVALID_REQUEST))
            elif line.strip() and (rejected := find_rejection(line)) is not None:
                await self.answer(rejected)
            elif line.strip():
                yield line.decode()


def _build_rejection(code: int) -> JSONRPCError:
    return JSONRPCError(
        jsonrpc="2.0", id=None, error=ErrorData(code=code, message=_ERROR_TEXTS[code])
    )


@contextmanager
def preserve_root_logger() -> Iterator[None]:
    """Prevent the SDK from configuring the root logger until the context ends."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
