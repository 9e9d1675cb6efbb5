import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, cast

import pytest
from mcp import Client
from pydantic import Field

from rag_assets.common.errors import ConfigurationError, InvalidRequest
from rag_assets.mcp.server import build_server
from rag_assets.mcp.tools import (
    DEFAULT_TOOLS,
    Knowledge,
    MessageContext,
    Tool,
    ToolFunction,
    current_message,
)
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, SearchAnswer, SearchRequest

CONTEXT = MessageContext("port", Caller(principals=("ada",)))


def _tide(_: Knowledge) -> ToolFunction:
    async def tide(vessel: Annotated[str, Field(max_length=10, description="Whose tide.")]) -> str:
        if vessel == "wreck":
            raise InvalidRequest("a wreck has no tide", hint="name another vessel")
        message = current_message()
        return f"{vessel}: high at {message.tenant_id} for {message.caller.principals}"

    return tide


TIDE = Tool(name="tide", description="Tell the tide.", function=_tide)


async def _search(tenant_id: str, request: SearchRequest) -> SearchAnswer:
    return SearchAnswer()


def answered(work: Callable[[Client], Awaitable[Any]], *tools: Tool) -> Any:
    knowledge = Knowledge(_search, cast("DocumentReader", None))
    server = build_server(knowledge, lambda _: CONTEXT, [*DEFAULT_TOOLS, *tools])

    async def run() -> Any:
        async with Client(server) as client:
            return await work(client)

    return asyncio.run(run())


def test_a_tool_of_a_system_is_listed_with_what_it_takes() -> None:
    tools = {tool.name: tool for tool in answered(lambda c: c.list_tools(), TIDE).tools}
    assert set(tools) == {"rag_search", "tide"}
    [name] = tools["tide"].input_schema["properties"]
    assert name == "vessel"
    assert tools["tide"].input_schema["properties"]["vessel"]["maxLength"] == 10
    assert tools["tide"].description == "Tell the tide."


def test_it_answers_from_the_tenant_and_in_the_name_of_its_message() -> None:
    result = answered(lambda c: c.call_tool("tide", {"vessel": "gull"}), TIDE)
    assert not result.is_error
    assert result.content[0].text == "gull: high at port for ('ada',)"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"vessel": "wreck"}, "a wreck has no tide; name another vessel"),
        ({"vessel": "x" * 11}, "tide: vessel"),
        ({}, "tide: vessel"),
    ],
)
def test_its_errors_tell_what_to_do_and_repeat_nothing(arguments: Any, text: str) -> None:
    result = answered(lambda c: c.call_tool("tide", arguments), TIDE)
    assert result.is_error
    assert text in result.content[0].text
    assert "x" * 11 not in result.content[0].text


def test_without_it_there_is_no_such_tool() -> None:
    result = answered(lambda c: c.call_tool("tide", {"vessel": "gull"}))
    assert result.is_error
    assert "unknown tool" in result.content[0].text


def _own(_: Knowledge) -> ToolFunction:
    async def rag_search(query: Annotated[str, Field(max_length=5, description="What.")]) -> str:
        if query == "fail":
            raise InvalidRequest("no such thing", hint="ask otherwise")
        return f"{query} of ports"

    return rag_search


OWN = Tool("rag_search", "Search ports.", _own, profiles=frozenset({"port"}), read_only=True)


@pytest.mark.parametrize("profile", ["port", "harbour"])
def test_a_tool_of_a_profile_goes_before_the_one_for_all(profile: str) -> None:
    context = MessageContext("port", Caller(), profile=profile)
    knowledge = Knowledge(_search, cast("DocumentReader", None))
    server = build_server(knowledge, lambda _: context, [*DEFAULT_TOOLS, OWN, TIDE])

    async def run() -> None:
        async with Client(server) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"rag_search", "tide"}
            takes = set(tools["rag_search"].input_schema["properties"])
            found = await client.call_tool("rag_search", {"query": "tides"})
            wrong = await client.call_tool("rag_search", {"query": "secret tides"})
            failed = await client.call_tool("rag_search", {"query": "fail"})
            said = [one.content[0].text for one in (found, wrong, failed)]  # type: ignore[union-attr]
            if profile == "port":
                assert takes == {"query"}
                assert said[0] == "tides of ports"
                assert said[1] == "rag_search: query: it is too long: 5 characters at most"
                assert said[2].endswith("no such thing; ask otherwise")
                assert wrong.is_error
                assert failed.is_error
            else:
                assert {"query", "top_k"} <= takes
                assert set(said) == {"No relevant documentation found for your query."}

    asyncio.run(run())


@pytest.mark.parametrize(("tool", "message"), [(TIDE, "several tools"), (OWN, "same name")])
def test_two_tools_of_one_name_for_the_same_profiles_are_refused(tool: Tool, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        answered(lambda c: c.list_tools(), tool, tool)
