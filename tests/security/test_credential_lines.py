"""Credentials in single lines are found; placeholders, examples and plain text are not masked.

`held_out.txt` was written before the rules. Assertions show its figures, but none of its lines.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.cost import untraced
from tests.security.credentials.lines import Part, clean_documents, line_samples
from tests.security.credentials.measure import Verdict, measure, project_mask, project_scan
from tests.security.credentials.model import Sample

LEAST_RECALL = 0.97
LEAST_PRECISION = 0.97
MOST_FLAGGED = 0.02
"""Of lines that were written because they resemble credentials."""
MOST_DOCUMENTS = {"development": 0, "held_out": 6}


class Judged(NamedTuple):
    """The verdict on a part, and its clean documents with a masked span."""

    part: Part
    verdict: Verdict
    flagged: list[str]


@pytest.fixture(scope="module", params=["development", "held_out"])
def judged(request: pytest.FixtureRequest) -> Judged:
    part: Part = request.param
    scan = project_scan()
    with untraced():
        verdict = measure(line_samples(part), scan, project_mask())
        flagged = [page.context for page in clean_documents(part) if _is_flagged(page, scan)]
    return Judged(part, verdict, flagged)


def test_credentials_in_lines_are_found(judged: Judged) -> None:
    assert judged.verdict.found.total() + judged.verdict.missed.total() > 500
    assert judged.verdict.recall >= LEAST_RECALL


def test_masked_spans_of_lines_are_credentials(judged: Judged) -> None:
    assert judged.verdict.precision >= LEAST_PRECISION


def test_clean_lines_and_documents_stay_unchanged(judged: Judged) -> None:
    assert judged.verdict.clean_lines > 300
    assert judged.verdict.flagged <= MOST_FLAGGED
    assert len(judged.flagged) <= MOST_DOCUMENTS[judged.part]


def test_no_line_is_in_both_parts() -> None:
    development = {sample.text for sample in line_samples("development")}
    assert not development & {sample.text for sample in line_samples("held_out")}


def _is_flagged(page: Sample, scan: object) -> bool:
    assert callable(scan)
    return any(
        not any(low <= start and end <= high for low, high in page.may)
        for start, end in scan(page.text)
    )
