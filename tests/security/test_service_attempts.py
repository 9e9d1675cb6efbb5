"""Hundreds of requests without a valid token."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.installation import Installation
from tests.security.service_process import Served, answered, post, serving

FAILURES = 60
QUESTION = b'{"query": "valve"}'


@pytest.fixture(scope="module")
def service(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "service.log"
    with serving(shared_installation, log) as service:
        yield service


def test_an_address_gets_a_retry_after_and_its_valid_tokens_still_work(service: Served) -> None:
    assert service.asked(QUESTION).status == 200

    def guess(number: int, *headers: str) -> tuple[int, str | None]:
        answer = service.asked(QUESTION, *headers, token=f"rag_guess-{number}")
        return answer.status, answer.headers.get("retry-after")

    first = [guess(n) for n in range(FAILURES)]
    assert {status for status, _ in first} == {401}
    later = [guess(FAILURES + n, f"X-Forwarded-For: 192.0.2.{n}") for n in range(5)]
    assert {status for status, _ in later} == {429}
    assert all(0 < int(seconds or 0) <= 60 for _, seconds in later)
    # A known token and an unknown one, from the same address.
    assert service.asked(QUESTION).status == 200
    assert service.asked(QUESTION, token=service.tokens["other"]).status == 200
    # From another address.
    guessed = post(QUESTION, "Authorization: Bearer rag_guess")
    assert answered(service.sent(guessed, "127.0.0.2")).status == 401


def test_paths_without_a_token_are_answered_meanwhile(service: Served) -> None:
    for _ in range(FAILURES + 1):
        last = service.asked(QUESTION, token="")
    assert last.status == 429
    assert last.json["type"] == "urn:rag-assets:problem:too-many-attempts"
    assert answered(service.sent(post(b"", path="/nowhere"))).status == 404
