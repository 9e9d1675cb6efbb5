import json
import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from rag_assets.api.responses import Health
from rag_assets.client import Client, operations
from rag_assets.client.calls import Call
from rag_assets.client.errors import (
    Failed,
    Invalid,
    NotReached,
    NotSent,
    NotUnderstood,
    PaymentRequired,
    Refused,
    TooManyRequests,
    Unavailable,
)
from rag_assets.client.exchange import ClientSettings, Retry, handle_failure, parse_outcome
from rag_assets.common.errors import ConfigurationError

CALL = operations.live()
ONCE = Call("POST", "/once", Health, repeatable=False)


def wanted(**changes: Any) -> ClientSettings:
    given = {"url": "https://rag", "token": "t", "tenant": None, "timeout": 1.0}
    return ClientSettings(**{**given, "retries": 2, "patience": 30.0, **changes})


def response(status: int, *, retry_after: str | None = None, **problem: Any) -> httpx2.Response:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    body = {"type": "urn:rag-assets:problem:x", "title": "X", "status": status, **problem}
    return httpx2.Response(status, headers=headers, content=json.dumps(body).encode())


def test_an_answer_is_read_whatever_else_it_holds() -> None:
    answer = httpx2.Response(200, json={"status": "ok", "new": 1})
    assert parse_outcome(CALL, answer, wanted(), None) == Health("ok")


@pytest.mark.parametrize("body", [b"<html>", b'{"status": 1}', b"", b"[]"])
def test_what_is_no_answer_is_not_repeated(body: bytes) -> None:
    with pytest.raises(NotUnderstood) as caught:
        parse_outcome(CALL, httpx2.Response(200, content=body), wanted(), None)
    assert "html" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(402, PaymentRequired), (422, Invalid), (500, Failed), (502, Failed), (418, Refused)],
)
def test_a_problem_is_raised_by_its_status(status: int, kind: type[Refused]) -> None:
    errors = [{"field": "top_k", "problem": "too large"}]
    problem = response(status, detail="correct it", request_id="order-66", errors=errors)
    with pytest.raises(Refused) as caught:
        parse_outcome(CALL, problem, wanted(), 0.2)
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.kind, error.detail) == (status, "x", "correct it")
    assert error.request_id == "order-66"
    assert str(error) == f"{status} X: correct it: top_k: too large"


def test_an_error_of_a_proxy_is_described_by_its_status() -> None:
    with pytest.raises(Failed, match="502 Bad Gateway"):
        parse_outcome(CALL, httpx2.Response(502, content=b"<html>"), wanted(), 0.2)
    moved = httpx2.Response(302, headers={"Location": "http://evil"})
    with pytest.raises(Refused, match="302 Found"):
        parse_outcome(CALL, moved, wanted(), 0.2)


@pytest.mark.parametrize("status", [429, 503])
def test_transient_refusals_are_retried_after_the_time_they_name(status: int) -> None:
    assert parse_outcome(CALL, response(status, retry_after="7"), wanted(), 0.2) == Retry(7.0)
    assert parse_outcome(CALL, response(status, retry_after="0"), wanted(), 0.2) == Retry(0.2)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=9), usegmt=True)
    later = parse_outcome(CALL, response(status, retry_after=date), wanted(), 0.2)
    assert isinstance(later, Retry)
    assert 7 <= later.seconds <= 10


@pytest.mark.parametrize(
    ("status", "call", "retry_after", "pause"),
    [
        (503, ONCE, "1", 0.2),  # it may have been acted upon
        (503, CALL, None, 0.2),  # nobody says that it passes
        (503, CALL, "soon", 0.2),
        (503, CALL, "31", 0.2),  # longer than anybody waits
        (503, CALL, "1", None),  # no attempt is left
        (500, CALL, "1", 0.2),
    ],
)
def test_other_refusals_are_not_retried(
    status: int, call: Call[Any], retry_after: str | None, pause: float | None
) -> None:
    with pytest.raises(Failed) as caught:
        parse_outcome(call, response(status, retry_after=retry_after), wanted(), pause)
    assert isinstance(caught.value, Unavailable) == (status == 503)


def test_a_call_over_the_rate_is_retried_even_if_it_is_not_repeatable() -> None:
    assert parse_outcome(ONCE, response(429, retry_after="1"), wanted(), 0.2) == Retry(1.0)
    with pytest.raises(TooManyRequests) as caught:
        parse_outcome(ONCE, response(429, retry_after="1"), wanted(), None)
    assert caught.value.retry_after == 1.0


def test_a_connection_that_broke_is_tried_again_and_a_time_that_is_over_is_not() -> None:
    broken = httpx2.RemoteProtocolError("closed")
    assert handle_failure(CALL, broken, 0.2) == Retry(0.2)
    for call, error, pause in (
        (ONCE, broken, 0.2),
        (CALL, broken, None),
        (CALL, httpx2.ReadTimeout("late"), 0.2),
    ):
        with pytest.raises(NotReached, match=re.escape(call.path)):
            handle_failure(call, error, pause)


def test_a_demand_that_adds_up_is_not_made_twice() -> None:
    assert not operations.reindex().repeatable
    assert not operations.answer("valve").repeatable


def test_attempts_are_bounded() -> None:
    assert list(wanted(retries=2).iter_pauses()) == [0.2, 0.4, None]
    assert list(wanted(retries=0).iter_pauses()) == [None]


def test_names_in_a_path_stay_between_their_slashes() -> None:
    for name, address in (("a/../b?c#d", "/x/a%2F..%2Fb%3Fc%23d"), ("..", "/x/%2E%2E")):
        call = Call("GET", "/x/{id}", Health, named={"id": name})
        request = httpx2.Client(base_url="http://rag").build_request("GET", call.address)
        assert request.url.raw_path.decode() == address


def test_a_call_is_about_the_clients_tenant_unless_it_names_one() -> None:
    asked = wanted(tenant="acme")
    assert asked.build_request_arguments(operations.status())["params"] == {"tenant": "acme"}
    other = asked.build_request_arguments(operations.status(tenant="other"))
    assert other["params"] == {"tenant": "other"}
    body = asked.build_request_arguments(operations.query("valve"))["json"]
    assert body == {"tenant": "acme", "query": "valve"}
    body = asked.build_request_arguments(operations.query("valve", tenant="other"))["json"]
    assert body == {"query": "valve", "tenant": "other"}
    assert asked.build_request_arguments(operations.live())["params"] == {}


def test_a_token_function_is_called_for_each_request_and_its_token_not_shown() -> None:
    tokens = iter(["one", "two"])
    asked = wanted(token=lambda: next(tokens))
    sent = [asked.build_request_arguments(CALL)["headers"]["Authorization"] for _ in range(2)]
    assert sent == ["Bearer one", "Bearer two"]
    assert "secret" not in repr(wanted(token="secret"))


@pytest.mark.parametrize(
    "given",
    [
        {"url": "rag.example"},
        {"url": "ftp://x"},
        {"url": "https://[x"},
        {"url": "https://user:s3cret@rag.example"},
        {"url": "http://rag.example"},
        {"url": "http://localhost.example"},
        {"token": "a\nb"},
    ],
)
def test_unsendable_text_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        wanted(**given).build_request_arguments(CALL)
    assert "s3cret" not in refused.value.advice


def test_a_token_goes_in_clear_to_this_machine_alone_and_past_no_proxy() -> None:
    for url in ("http://127.0.0.1:8000", "http://[::1]", "http://localhost:8000/rag"):
        assert wanted(url=url).build_client_arguments()["trust_env"] is False
    elsewhere = wanted(url="http://rag.example", allow_http=True)
    assert elsewhere.build_client_arguments()["trust_env"] is True


@pytest.mark.parametrize("id_", ["\ud800", "x" * 70_000])
def test_unsendable_identifiers_are_errors(id_: str) -> None:
    with Client("https://rag.example", "t") as rag, pytest.raises(NotSent) as refused:
        rag.put_record("page", id_, "text")
    assert id_ not in str(refused.value)
    with Client("https://rag.example", "t") as rag, pytest.raises(NotSent):
        rag.put_record("page", "1", "half \ud800")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_put_record_with_number_outside_json_is_not_sent(number: float) -> None:
    with Client("https://rag.example", "t") as rag, pytest.raises(NotSent):
        rag.put_record("page", "1", "text", metadata={"share": number})


def test_handle_failure_of_illegal_header_is_not_sent() -> None:
    illegal = httpx2.LocalProtocolError("Illegal header value b's3cret'")
    with pytest.raises(NotSent) as refused:
        handle_failure(CALL, illegal, 0.1)
    assert "s3cret" not in refused.value.advice


def test_query_without_words_is_refused_in_plain_text() -> None:
    with Client("https://rag.example", "t") as rag, pytest.raises(Invalid) as refused:
        rag.query(" ")
    assert "query: it must contain a visible character" in str(refused.value)


def test_an_answer_is_waited_for_longer_than_a_search() -> None:
    def silent(call: Call[Any], **given: Any) -> Any:
        return wanted(**given).build_request_arguments(call)["timeout"].read

    assert silent(operations.query("valve")) == 1.0
    assert silent(operations.answer("valve")) == 120.0
    assert silent(operations.answer("valve"), timeout=200.0) == 200.0
