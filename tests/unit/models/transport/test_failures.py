import ssl
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from rag_assets.common.errors import (
    InputRejected,
    MalformedResponse,
    ProviderRefused,
    ProviderUnavailable,
)
from rag_assets.models.transport.failures import (
    Refusal,
    classify_interruption,
    classify_refusal,
    parse_retry_after,
)

REFUSED, TRANSIENT, REJECTED = ProviderRefused, ProviderUnavailable, InputRejected


@pytest.mark.parametrize(
    ("status", "said", "kind", "fault", "message"),
    [
        (301, None, REFUSED, "address", "redirects"),
        (308, None, REFUSED, "address", "redirects"),
        (400, None, REJECTED, None, "rejects a text"),
        (400, "key", REFUSED, "key", "the key .* is refused"),
        (400, "quota", REFUSED, "quota", "exhausted"),
        (400, "model", REFUSED, "model", "no such model"),
        (401, None, REFUSED, "key", "the key .* is refused"),
        (402, None, REFUSED, "quota", "exhausted"),
        (403, None, REFUSED, "key", "the key .* is refused"),
        (404, None, REFUSED, "model", "no such model"),
        (405, None, REFUSED, None, "refuses the request"),
        (408, None, TRANSIENT, None, "is unavailable"),
        (409, None, TRANSIENT, None, "is unavailable"),
        (410, None, REFUSED, None, "refuses the request"),
        (413, None, REJECTED, None, "rejects a text"),
        (422, None, REJECTED, None, "rejects a text"),
        (425, None, TRANSIENT, None, "is unavailable"),
        (429, None, TRANSIENT, None, "limits requests"),
        (429, "quota", REFUSED, "quota", "exhausted"),
        (451, None, REFUSED, None, "refuses the request"),
        (500, None, TRANSIENT, None, "is unavailable"),
        (502, None, TRANSIENT, None, "is unavailable"),
        (503, None, TRANSIENT, None, "is unavailable"),
        (529, None, TRANSIENT, None, "is unavailable"),
    ],
)
def test_every_status_has_its_meaning(status, said, kind, fault, message):
    failure = classify_refusal(Refusal(status, {}, said), "openai/m@3")
    assert type(failure) is kind
    assert getattr(failure, "fault", None) == fault
    assert failure.requests == 1
    with pytest.raises(kind, match=message):
        raise failure
    assert "openai/m@3" in failure.message
    assert str(status) in failure.message
    if kind is REFUSED:
        assert failure.hint


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_how_long_to_wait_is_understood(headers, seconds):
    assert parse_retry_after(headers) == seconds


def test_a_date_to_wait_for_is_understood():
    then = datetime.now(UTC) + timedelta(seconds=90)
    seconds = parse_retry_after({"retry-after": format_datetime(then, usegmt=True)})
    assert seconds == pytest.approx(90, abs=2)


def test_a_wait_in_the_body_precedes_that_of_headers():
    refusal = Refusal(429, {"retry-after": "1"}, retry_after=30.0)
    failure = classify_refusal(refusal, "gemini/m@3")
    assert isinstance(failure, ProviderUnavailable)
    assert failure.retry_after == 30.0


def test_a_required_wait_is_cut_to_a_day():
    for refusal in (
        Refusal(429, {"retry-after": "99999999999999999"}),
        Refusal(429, {}, retry_after=float("1" * 400)),
    ):
        failure = classify_refusal(refusal, "gemini/m@3")
        assert isinstance(failure, ProviderUnavailable)
        assert failure.retry_after == 86_400


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (TimeoutError(), TRANSIENT, "in time"),
        (caused(RuntimeError("sk-key"), TimeoutError("sk-key")), TRANSIENT, "in time"),
        (ConnectionResetError("sk-key"), TRANSIENT, "closed the connection"),
        (caused(OSError(), ssl.SSLCertVerificationError("sk-key")), REFUSED, "cannot be verified"),
        (caused(OSError(), ssl.SSLError("sk-key")), TRANSIENT, "closed the connection"),
        (caused(OSError(), MalformedResponse("too long")), MalformedResponse, "too long"),
        (caused(OSError(), ProviderRefused("not public")), REFUSED, "not public"),
    ],
)
def test_an_interruption_is_passing_unless_it_is_for_a_person(error, kind, message):
    failure = classify_interruption(error, "openai/m@3")
    with pytest.raises(kind, match=message):
        raise failure
    assert "sk-key" not in failure.advice
