"""Credentials of the judged set are found wherever they stand, and little else is masked.

The held-out half has contexts and clean texts of its own, on which nothing was tuned.
"""

from __future__ import annotations

import pytest

from tests.security.credentials.dataset import samples
from tests.security.credentials.measure import Verdict, measure, project_mask, project_scan
from tests.security.credentials.model import Half

LEAST_RECALL = 0.97
LEAST_PRECISION = 0.97
MOST_FLAGGED = 0.01


@pytest.fixture(scope="module", params=["tuning", "held_out"])
def verdict(request: pytest.FixtureRequest) -> Verdict:
    half: Half = request.param
    return measure(samples(half), project_scan(), project_mask())


def test_credentials_are_found(verdict: Verdict) -> None:
    assert verdict.found.total() + verdict.missed.total() > 5000
    assert verdict.recall >= LEAST_RECALL


def test_what_is_masked_is_a_credential(verdict: Verdict) -> None:
    assert verdict.precision >= LEAST_PRECISION


def test_clean_lines_stay_as_they_are(verdict: Verdict) -> None:
    assert verdict.clean_lines > 10_000
    assert verdict.flagged <= MOST_FLAGGED
