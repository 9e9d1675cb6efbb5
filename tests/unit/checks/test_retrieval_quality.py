import pytest

from rag_assets.checks.retrieval_quality import build_verdict
from rag_assets.quality.evaluation import GuardedMeasure, QualityVerdict, WorseQuestion


@pytest.mark.parametrize(
    ("outcome", "passed", "severity"),
    [("pass", True, "WARN"), ("warn", False, "WARN"), ("fail", False, "ERROR")],
)
def test_only_a_failure_is_an_error(outcome: str, passed: bool, severity: str) -> None:
    found = build_verdict(QualityVerdict(outcome, "as found", 30, 20), "acme")  # type: ignore[arg-type]
    assert (found.passed, found.severity) == (passed, severity)


def test_expected_and_actual_and_the_questions_are_shown() -> None:
    guarded = (GuardedMeasure("nDCG@10", 0.8, 0.78, 0.7),)
    worse = (WorseQuestion("parent-time-off", 1.0, 0.2),)
    found = build_verdict(QualityVerdict("fail", "worse", 30, 20, guarded, worse, ("a",)), "acme")
    rows = [(row.what, row.expected, row.actual) for row in found.compared]
    assert rows == [("nDCG@10, at least", 0.78, 0.7), ("judged questions asked, at least", 20, 30)]
    assert found.offenders == (("parent-time-off", 1.0, 0.2),)
    assert "rag-assets eval acme" in found.description
    assert found.notes == {"questions left out": 1}
