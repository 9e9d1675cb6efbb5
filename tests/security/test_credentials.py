"""Credentials of the judged set are found in every context, and little else is masked.

The held-out half has its own contexts and clean texts, which were never used for tuning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pytest

from tests.cost import untraced
from tests.security.credentials.contexts import contexts_of
from tests.security.credentials.dataset import samples
from tests.security.credentials.measure import Verdict, measure, project_mask, project_scan
from tests.security.credentials.model import Family, Half, Sample, Span

LEAST_RECALL = 0.97
LEAST_PRECISION = 0.97
MOST_FLAGGED = 0.01
MOST_FLAGGED_NEAR = 0.02


def _plain(half: Half) -> list[Sample]:
    return [s for s in samples(half) if s.media_type is None]


def _no_document(data: bytes, media_type: str) -> tuple[str, Sequence[Span]]:
    raise AssertionError(f"no {media_type} of {len(data)} bytes was to be parsed")


@pytest.mark.parametrize("half", ["tuning", "held_out"])
def test_the_set_is_large_and_varied_enough(half: Half) -> None:
    with untraced():
        judged = list(samples(half))
    kinds = {s.kind for s in judged if s.spans}
    contexts = {s.context for s in judged if s.spans and s.kind != "mixed"}
    assert len(judged) > 2_000
    assert len(kinds) > 70
    assert len(contexts) > 100
    assert all(s.text[a:b].strip() for s in judged for a, b in s.spans)


def test_no_context_and_no_clean_text_is_in_both_halves() -> None:
    def texts(half: Half) -> set[str]:
        with untraced():
            return {s.text for s in samples(half)}

    def templates(half: Half) -> set[str]:
        families = get_args(Family)
        return {c.template for f in families for _, c in contexts_of(f, half)} - {"«X»"}

    assert not templates("tuning") & templates("held_out")
    assert not texts("tuning") & texts("held_out")


def test_the_measure_distinguishes_a_perfect_scanner_from_a_blind_and_a_greedy_one() -> None:
    judged = _plain("tuning")
    spans = {s.text: s.spans for s in judged}
    perfect = measure(judged, lambda text: spans[text], _no_document)
    blind = measure(judged, lambda _: (), _no_document)
    greedy = measure(judged, lambda text: [(0, len(text))], _no_document)
    assert (perfect.recall, perfect.precision, perfect.flagged) == (1, 1, 0)
    assert (blind.recall, blind.flagged) == (0, 0)
    assert (greedy.recall, greedy.flagged) == (1, 1)
    assert greedy.precision < 0.1


@pytest.fixture(scope="module", params=["tuning", "held_out"])
def verdict(request: pytest.FixtureRequest) -> Verdict:
    half: Half = request.param
    with untraced():
        return measure(samples(half), project_scan(), project_mask())


def test_credentials_are_found(verdict: Verdict) -> None:
    assert verdict.found.total() + verdict.missed.total() > 5000
    assert verdict.recall >= LEAST_RECALL


def test_masked_spans_are_credentials(verdict: Verdict) -> None:
    assert verdict.precision >= LEAST_PRECISION


def test_clean_lines_stay_unchanged(verdict: Verdict) -> None:
    assert verdict.clean_lines > 10_000
    assert verdict.flagged <= MOST_FLAGGED
    assert verdict.near_lines > 1_000
    assert verdict.flagged_near_share <= MOST_FLAGGED_NEAR
