"""Two to five adjacent credentials of any kinds: all are masked, and nothing else is changed."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from string import ascii_letters, ascii_uppercase, digits

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.privacy.secrets.spans import mask
from tests.rules import shared_scanner
from tests.security.credentials.kinds import KINDS
from tests.security.credentials.model import Credential, Kind, Span

_KINDS = [kind for kind in KINDS if kind.family in {"token", "line"}]
_MARKUP = (
    "{}",
    "**{}**",
    "`{}`",
    '"{}"',
    "({})",
    "<code>{}</code>",
    "- {}",
    "> {}",
    "{}.",
    "🔑 {}",
)
_BETWEEN = (
    "\n",
    "\n\n",
    "\r\n",
    "\n\nThen the other one, which came later:\n\n",
    "\n---\n",
    "\n1. ",
)


@pytest.fixture(scope="module")
def scanner() -> SecretScanner:
    return shared_scanner()


Placed = tuple[Kind, int, str, str]
_PLACED = st.tuples(
    st.sampled_from(_KINDS),
    st.sampled_from(range(10_001)),  # integers() would also draw constants of loaded modules
    st.sampled_from(_MARKUP),
    st.sampled_from(_BETWEEN),
)


@pytest.mark.no_cover
@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.lists(_PLACED, min_size=2, max_size=5))
def test_all_are_masked_and_nothing_else_is_changed(
    scanner: SecretScanner, placed: list[Placed]
) -> None:
    check(scanner, placed)


@pytest.mark.slow
@pytest.mark.no_cover
def test_any_kind_may_stand_on_the_line_after_any_other(scanner: SecretScanner) -> None:
    for first, second in product(_KINDS, repeat=2):
        check(scanner, [(first, 1, "{}", "\n"), (second, 2, "{}", "\n")])
        check(scanner, [(first, 3, "{}", "\n"), (second, 1, "{}", "\n")])


def check(scanner: SecretScanner, placed: list[Placed]) -> None:
    text, credentials = written(placed)
    spans = scanner.scan(text)
    masked = mask(text, spans)
    due = {n for a, b in credentials for n in range(a, b) if text[n].isalnum()}
    left = sorted(n for n in due if masked[n] == text[n])
    assert not left, (
        f"left of {[kind.name for kind, *_ in placed]}: {text[left[0] : left[-1] + 1]!r}"
    )
    beside = {n for span in spans for n in range(span.start, span.end) if text[n].isalnum()} - due
    assert not beside - may_of(placed), f"{text[min(beside) - 20 : max(beside) + 20]!r}"


def test_a_word_after_two_tokens_does_not_complete_a_third(scanner: SecretScanner) -> None:
    """Parts of two tokens and of a word together look like an AWS key."""
    random = Random(5)
    for _ in range(5):
        body = "".join(random.choices(ascii_letters + digits, k=159))
        first = f"ya{29}.{body[:143]}-{body[143:]}"
        second = "AK" + "IA" + "".join(random.choices(ascii_uppercase + "234567", k=16))
        text = f"Notes of the day.\n\n{first}\n{second}\nThat is all.\n"
        masked = mask(text, scanner.scan(text))
        assert masked.endswith("\nThat is all.\n")
        assert first not in masked
        assert second not in masked


def written(placed: list[Placed]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text, and the spans of its credentials."""
    return _put(placed, lambda credential: credential.spans)


def may_of(placed: list[Placed]) -> set[int]:
    """Return the positions that may be masked or not: a user's name, the frame of a key."""
    _, spans = _put(placed, lambda credential: credential.may)
    return {n for a, b in spans for n in range(a, b)}


def _put(
    placed: list[Placed], which: Callable[[Credential], tuple[Span, ...]]
) -> tuple[str, list[Span]]:
    text = "Notes of the day.\n\n"
    found: list[Span] = []
    for kind, seed, markup, between in placed:
        credential: Credential = kind.make(Random(seed))
        template = "{}" if kind.whole_line or "\n" in credential.text else markup
        before, after = template.split("{}")
        text += before
        found += [(len(text) + a, len(text) + b) for a, b in which(credential)]
        text += credential.text + after + between
    return text + "That is all.\n", found
