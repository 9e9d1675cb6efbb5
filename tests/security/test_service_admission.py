"""Very many questions at once: some wait, some are refused early, and no tenant starves."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.installation import Installation
from tests.security.service_process import Answer, Served, answered, post, serving

WAIT = 4


@pytest.fixture(scope="module")
def service(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "service.log"
    limits = {
        "RAG_ASSETS_SERVICE_RATE": "100000/minute",
        "RAG_ASSETS_SERVICE_SEARCHES": "8",
        "RAG_ASSETS_SERVICE_WAIT": str(WAIT),
    }
    with serving(shared_installation, log, **limits) as service:
        yield service


@dataclass
class Timed:
    """A response, and its duration in seconds."""

    answer: Answer
    seconds: float


async def ask(service: Served, tenant: str, number: int) -> Timed:
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    authorization = f"Authorization: Bearer {service.tokens[tenant]}"
    writer.write(post(b'{"query": "valve number %d"}' % number, authorization))
    answer = answered(await reader.read())
    writer.close()
    return Timed(answer, time.monotonic() - began)


@pytest.mark.long
def test_a_thousand_requests_at_once_are_answered_or_get_a_retry_after(service: Served) -> None:
    async def run() -> tuple[list[Timed], list[Timed]]:
        for number in range(40):
            await ask(service, "acme", number)
        busy = asyncio.gather(*(ask(service, "acme", number) for number in range(1_000)))
        beside = []
        await asyncio.sleep(0.5)
        while not busy.done():
            beside.append(await ask(service, "other", len(beside)))
        return await busy, beside

    asked, beside = asyncio.run(run())
    assert {each.answer.status for each in asked} == {200, 503}
    by_status = Counter(each.answer.status for each in asked)
    assert by_status[200] >= 20
    refused = [each.answer for each in asked if each.answer.status == 503]
    assert {answer.json["type"] for answer in refused} == {"urn:rag-assets:problem:overloaded"}
    assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in refused)
    # A sequential caller does not wait behind a thousand others.
    assert {each.answer.status for each in beside} == {200}
    longest = max(each.seconds for each in asked if each.answer.status == 200)
    assert sum(each.seconds for each in beside) / len(beside) < longest / 2


def test_no_search_is_made_for_a_closed_connection(service: Served) -> None:
    def searched() -> float:
        received = service.sent(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return sum(
            float(line.split()[-1])
            for line in received.decode().splitlines()
            if line.startswith("rag_assets_http_requests_total") and 'status="499"' in line
        )

    async def run() -> None:
        writers = []
        for number in range(300):
            _, writer = await asyncio.open_connection("127.0.0.1", service.port)
            authorization = f"Authorization: Bearer {service.tokens['acme']}"
            writer.write(post(b'{"query": "gone %d"}' % number, authorization))
            writers.append(writer)
        for writer in writers:
            await writer.drain()
        for writer in writers:
            writer.transport.abort()

    before = searched()
    asyncio.run(run())
    until = time.monotonic() + 10
    while searched() - before < 100 and time.monotonic() < until:
        time.sleep(0.1)
    assert searched() - before >= 100
