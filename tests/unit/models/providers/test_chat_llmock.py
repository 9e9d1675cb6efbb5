"""Chat models through their real SDKs, with an independent server that injects faults."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from rag_assets.common.errors import (
    ChatError,
    ChatRefused,
    ChatTimeout,
    ChatUnavailable,
    PromptRejected,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat import Completion, RemoteChat
from rag_assets.models.providers.registry import get_provider
from rag_assets.models.transport.connection import Server

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

both = pytest.mark.parametrize("provider", ["openai", "openai-compatible", "gemini"])


def chat_of(llmock: LLMock, provider: str, model: str) -> RemoteChat:
    name = "gemini" if provider == "gemini" else "openai"
    server = Server(f"{provider}/{model}", llmock.base_url(name), key_optional=False)
    allowed = PrivateEndpoints.parse(urlsplit(llmock.url).netloc)

    offered = get_provider(provider).chat
    assert offered is not None
    connect = partial(offered.endpoint, server, key, allowed, model)
    return RemoteChat(connect, server.id, first_pause=0.05)


def key() -> SecretStr:
    return SecretStr("sk-test")


def ask_chat(llmock: LLMock, provider: str, *, seconds: float = 20.0, **options: Any) -> Completion:
    model = "gemini-2.5-flash" if provider == "gemini" else "gpt-4.1-mini"
    chat = chat_of(llmock, provider, options.pop("model", model))

    async def once() -> Completion:
        try:
            return await chat.complete(
                "Answer.", "What is it?", max_tokens=options.pop("max_tokens", 100), seconds=seconds
            )
        finally:
            await chat.close()

    return asyncio.run(once())


@both
def test_an_answer_has_the_tokens_charged(llmock: LLMock, provider: str) -> None:
    llmock.reply("It is a valve [1].")
    completion = ask_chat(llmock, provider)
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
    completion = ask_chat(llmock, provider)
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
        ask_chat(llmock, "openai")
    assert type(caught.value) is kind
    assert getattr(caught.value, "fault", None) == fault
    assert caught.value.requests == len(llmock.requests) == requests
    assert "embed" not in caught.value.advice
    assert caught.value.__context__ is None


def test_no_answer_takes_longer_than_it_may(llmock: LLMock) -> None:
    llmock.delay(20.0)
    started = time.monotonic()
    with pytest.raises(ChatTimeout, match=r"within 0\.4 seconds") as caught:
        ask_chat(llmock, "openai", seconds=0.4)
    assert time.monotonic() - started < 15
    assert caught.value.requests == 1


def test_a_pause_that_is_longer_than_the_answer_may_take_is_passed_on(llmock: LLMock) -> None:
    llmock.rate_limit(times=None, retry_after=30.0)
    with pytest.raises(ChatUnavailable) as caught:
        ask_chat(llmock, "openai", seconds=5.0)
    assert caught.value.retry_after == 30.0
    assert len(llmock.requests) == 1
