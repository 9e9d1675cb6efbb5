"""Chat models through their real SDKs: well-formed, malformed and failing responses."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import (
    ChatError,
    ChatFailed,
    ChatRefused,
    ChatTimeout,
    ChatUnavailable,
    NoProviderKey,
    PromptRejected,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat import MAX_ANSWER_BYTES, MAX_STREAM_BYTES, Completion, RemoteChat
from rag_assets.models.providers import openai as openai_provider
from rag_assets.models.providers.registry import get_provider
from rag_assets.models.transport.connection import Server
from tests.unit.models.providers.conftest import GEMINI_PATH, KEY, OPENAI_PATH, AskChat

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock


TEXT = "a confidential sentence"


def openai(content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"} | more]}


def gemini(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}]}


@pytest.mark.slow
def test_thoughts_are_paid_for_and_not_shown(httpserver: HTTPServer, ask_chat: AskChat) -> None:
    said = gemini({"text": "Hm [1].", "thought": True}, {"text": "It is "}, {"text": "so [2]."})
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "thoughtsTokenCount": 30}
    httpserver.expect_request(GEMINI_PATH).respond_with_json({**said, "usageMetadata": usage})
    completion = ask_chat("gemini")
    assert (completion.text, completion.input_tokens) == ("It is so [2].", 7)
    assert completion.output_tokens == 35
    assert KEY not in httpserver.log[0][0].url


@pytest.mark.slow
def test_thoughts_of_an_own_server_are_hidden(httpserver: HTTPServer, ask_chat: AskChat) -> None:
    said = openai("<think>\nPerhaps [1].\n</think>\nIt is so [2].")
    httpserver.expect_request(OPENAI_PATH).respond_with_json(said)
    completion = ask_chat("openai-compatible")
    assert completion.text.strip() == "It is so [2]."
    assert completion.input_tokens > 0  # as counted here, since the server does not say
    assert completion.output_tokens > 0


@pytest.mark.parametrize(
    ("provider", "path", "said"),
    [
        ("openai-compatible", OPENAI_PATH, openai("It is", finish_reason="length")),
        ("gemini", GEMINI_PATH, gemini({"text": "It is"}, finishReason="MAX_TOKENS")),
    ],
)
def test_an_answer_at_the_token_limit_is_marked_as_cut(
    httpserver: HTTPServer, ask_chat: AskChat, provider: str, path: str, said: dict[str, Any]
) -> None:
    httpserver.expect_request(path).respond_with_json(said)
    completion = ask_chat(provider)
    assert (completion.text, completion.cut) == ("It is", True)


def test_a_blocked_question_is_rejected(httpserver: HTTPServer, ask_chat: AskChat) -> None:
    said = {"promptFeedback": {"blockReason": "SAFETY"}}
    httpserver.expect_request(GEMINI_PATH).respond_with_json(said)
    with pytest.raises(PromptRejected):
        ask_chat("gemini")


def test_an_own_server_needs_no_key(httpserver: HTTPServer, ask_chat: AskChat) -> None:
    httpserver.expect_request(OPENAI_PATH).respond_with_json(openai("Yes."))
    assert ask_chat("openai-compatible", key=None).text == "Yes."
    assert "Authorization" not in httpserver.log[0][0].headers
    for provider in ("openai", "gemini"):
        with pytest.raises(NoProviderKey):
            ask_chat(provider, key=None)
    assert len(httpserver.log) == 1


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_private_addresses_fail(httpserver: HTTPServer, ask_chat: AskChat, provider: str) -> None:
    with pytest.raises(ChatRefused, match="base_url") as caught:
        ask_chat(provider, private=False)
    assert caught.value.requests == 0
    assert httpserver.log == []


def chunks(*contents: str, end: str | None = "stop") -> str:
    """Return a streamed answer: one token in each event, then its end and the usage."""
    events: list[Any] = [
        {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}
        for content in contents
    ]
    if end is not None:
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
        events.append({"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 3}})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def test_a_slow_server_streams_its_answer(httpserver: HTTPServer, ask_chat: AskChat) -> None:
    body = chunks("<think>Hm.</think>", "It is ", "so [2].", end="length")
    httpserver.expect_request(OPENAI_PATH).respond_with_data(body, content_type="text/event-stream")
    completion = ask_chat("openai-compatible", silent_seconds=900.0)
    assert (completion.text, completion.cut) == ("It is so [2].", True)
    assert (completion.input_tokens, completion.output_tokens) == (40, 3)
    sent = json.loads(httpserver.log[0][0].get_data())
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize("body", [chunks("It is", end=None), "data: [DONE]\n\n", "data: {\n\n", ""])
def test_a_stream_without_end_fails(httpserver: HTTPServer, ask_chat: AskChat, body: str) -> None:
    httpserver.expect_request(OPENAI_PATH).respond_with_data(body, content_type="text/event-stream")
    with pytest.raises(ChatFailed):
        ask_chat("openai-compatible", silent_seconds=900.0)


TOKENS = 1_500
PADDING = "x" * 6_000


def test_streamed_answer_may_be_sent_in_many_more_bytes_than_its_text_has(
    httpserver: HTTPServer, ask_chat: AskChat
) -> None:
    event = {"choices": [{"index": 0, "delta": {"content": "a "}, "finish_reason": None}]}
    line = f"data: {json.dumps(event | {'system_fingerprint': PADDING})}\n\n"
    body = line * TOKENS + chunks()
    assert len(body) > 2 * MAX_ANSWER_BYTES > 100 * len("a " * TOKENS)
    httpserver.expect_request(OPENAI_PATH).respond_with_data(body, content_type="text/event-stream")
    completion = ask_chat("openai-compatible", silent_seconds=900.0, seconds=600.0)
    assert completion.text == "a " * TOKENS


def respond_for_ever(sent: list[int], line: str) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:
        def events() -> Iterator[str]:
            while True:
                sent[0] += len(line)
                yield line

        return Response(events(), content_type="text/event-stream")

    return respond


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "limit"), [("é" * 32_768, MAX_ANSWER_BYTES), ("", MAX_STREAM_BYTES)]
)
def test_server_that_writes_for_ever_is_given_up(
    httpserver: HTTPServer, ask_chat: AskChat, content: str, limit: int
) -> None:
    event = {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}
    line = f"data: {json.dumps(event | {'padding': PADDING * 10}, ensure_ascii=False)}\n\n"
    sent = [0]
    httpserver.expect_request(OPENAI_PATH).respond_with_handler(respond_for_ever(sent, line))
    with pytest.raises(ChatFailed):
        ask_chat("openai-compatible", silent_seconds=900.0, seconds=600.0)
    # Each of three attempts ends at the limit, what is under way in buffers apart.
    assert sent[0] < 3 * (2 * limit + 16 * 1024 * 1024)


def test_server_that_falls_silent_while_it_writes_is_given_up(
    httpserver: HTTPServer, ask_chat: AskChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    def respond(request: Request) -> Response:
        def events() -> Iterator[str]:
            time.sleep(0.4)  # It reads for longer than it may be silent while it writes.
            yield chunks("It is", end=None).removesuffix("data: [DONE]\n\n")
            time.sleep(1.2)

        return Response(events(), content_type="text/event-stream")

    monkeypatch.setattr(openai_provider, "_BETWEEN_TOKENS_SECONDS", 0.2)
    httpserver.expect_request(OPENAI_PATH).respond_with_handler(respond)
    started = time.monotonic()
    with pytest.raises(ChatError):
        ask_chat("openai-compatible", silent_seconds=900.0, seconds=2.0)
    assert 0.4 < time.monotonic() - started < 5.0


MALFORMED = ["", "{", "null", "[]", "{}", '{"choices": []}', '{"candidates": []}', '"said"']


@pytest.mark.parametrize("body", [*MALFORMED, json.dumps(openai({"text": "no"}))])
@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_malformed_answer_is_none(
    httpserver: HTTPServer, ask_chat: AskChat, provider: str, body: str
) -> None:
    path = GEMINI_PATH if provider == "gemini" else OPENAI_PATH
    httpserver.expect_request(path).respond_with_data(body, content_type="application/json")
    with pytest.raises(ChatFailed):
        ask_chat(provider)


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 418, 429])
@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_neither_key_nor_prompt_appears_anywhere(
    httpserver: HTTPServer,
    ask_chat: AskChat,
    caplog: pytest.LogCaptureFixture,
    provider: str,
    status: int,
) -> None:
    def echo(request: Request) -> Response:
        key = request.headers.get("Authorization") or request.headers.get("X-Goog-Api-Key")
        said = f"{key} {request.get_data(as_text=True)}".replace("\n", " ")
        error = {"message": said, "code": said, "type": said, "status": said, "details": [said]}
        body = {"error": error, "choices": said, "candidates": [{"content": said}]}
        headers = {"X-Request-Id": said, "Location": f"/?{KEY}", "Retry-After": "60"}
        response = Response(json.dumps(body), headers=headers, content_type="application/json")
        response.status = f"{status} {KEY}"
        return response

    path = GEMINI_PATH if provider == "gemini" else OPENAI_PATH
    httpserver.expect_request(path).respond_with_handler(echo)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(ChatError) as caught:
        ask_chat(provider, TEXT)
    assert len(httpserver.log) == 1
    ours = [record for record in caplog.records if not record.name.startswith("werkzeug")]
    told = [
        *traceback.format_exception(caught.value),
        str(caught.value.__dict__),
        *(record.getMessage() + str(record.exc_info) for record in ours),
    ]
    assert KEY not in "".join(told)
    assert TEXT not in "".join(told)


def chat_of(llmock: LLMock, provider: str, model: str) -> RemoteChat:
    name = "gemini" if provider == "gemini" else "openai"
    server = Server(f"{provider}/{model}", llmock.base_url(name), key_optional=False)
    allowed = PrivateEndpoints.parse(urlsplit(llmock.url).netloc)

    offered = get_provider(provider).chat
    assert offered is not None
    connect = partial(offered.endpoint, server, lambda: SecretStr("sk-test"), allowed, model)
    return RemoteChat(connect, server.id, first_pause=0.05)


def ask_mock(llmock: LLMock, provider: str, seconds: float = 20.0) -> Completion:
    model = "gemini-2.5-flash" if provider == "gemini" else "gpt-4.1-mini"
    chat = chat_of(llmock, provider, model)

    async def once() -> Completion:
        try:
            return await chat.complete("Answer.", "What is it?", max_tokens=100, seconds=seconds)
        finally:
            await chat.close()

    return asyncio.run(once())


@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "gemini"])
def test_an_answer_has_the_tokens_charged(llmock: LLMock, provider: str) -> None:
    llmock.reply("It is a valve [1].")
    completion = ask_mock(llmock, provider)
    assert completion.text == "It is a valve [1]."
    assert completion.input_tokens > 0
    assert completion.output_tokens > 0
    assert (completion.cut, completion.requests) == (False, 1)
    [record] = llmock.requests
    said = str(record.body)
    assert "Answer." in said
    assert "What is it?" in said
    bounds = {"openai": "max_completion_tokens", "openai-compatible": "max_tokens"}
    assert f"'{bounds.get(provider, 'maxOutputTokens')}': 100" in said


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_transient_failures_are_waited_for(llmock: LLMock, provider: str) -> None:
    llmock.rate_limit(times=1, retry_after=0.1).fail(503, times=1).reply("Yes.")
    completion = ask_mock(llmock, provider)
    assert (completion.text, completion.requests) == ("Yes.", 3)
    llmock.assert_resilient(strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "kind", "fault", "requests"),
    [
        (401, ChatRefused, "key", 1),
        (404, ChatRefused, "model", 1),
        (400, PromptRejected, None, 1),
        (503, ChatUnavailable, None, 3),
    ],
)
def test_each_lasting_failure_has_its_error(
    llmock: LLMock, status: int, kind: type[ChatError], fault: str | None, requests: int
) -> None:
    llmock.fail(status, times=None)
    with pytest.raises(kind) as caught:
        ask_mock(llmock, "openai")
    assert type(caught.value) is kind
    assert getattr(caught.value, "fault", None) == fault
    assert caught.value.requests == len(llmock.requests) == requests
    assert "embed" not in caught.value.advice
    assert caught.value.__context__ is None


def test_no_answer_takes_longer_than_it_may(llmock: LLMock) -> None:
    llmock.delay(20.0)
    started = time.monotonic()
    with pytest.raises(ChatTimeout, match=r"within 0\.4 seconds") as caught:
        ask_mock(llmock, "openai", seconds=0.4)
    assert time.monotonic() - started < 15
    assert caught.value.requests == 1


def test_a_pause_that_is_longer_than_the_answer_may_take_is_passed_on(llmock: LLMock) -> None:
    llmock.rate_limit(times=None, retry_after=30.0)
    with pytest.raises(ChatUnavailable) as caught:
        ask_mock(llmock, "openai", seconds=5.0)
    assert caught.value.retry_after == 30.0
    assert len(llmock.requests) == 1
