from dataclasses import replace
from datetime import UTC, datetime

from rag_assets.checks.canary import build_verdict
from rag_assets.pipeline.canary import CanaryResult
from rag_assets.storage.catalog.database import TenantRef

NOW = datetime(2026, 11, 21, 4, 30, tzinfo=UTC)
SEEN = CanaryResult(
    TenantRef("acme", 1), "openai/text-embedding-3-small@1536", 0.01, at=NOW, since=NOW
)


def result(**changes: object) -> CanaryResult:
    return replace(SEEN, **changes)  # type: ignore[arg-type]


def test_the_noise_between_two_calls_passes() -> None:
    verdict = build_verdict(result(distances=(0.0001, 0.0, 0.00012, 0.0, 0.0)))
    assert verdict.passed
    assert verdict.description == "no probe's vector moved by more than 0.000120"
    assert [(row.expected, row.actual) for row in verdict.compared] == [(5, 5)]


def test_a_probe_beyond_the_limit_fails_with_the_remedy() -> None:
    verdict = build_verdict(result(distances=(0.0001, 0.0, 0.03, 0.0, 0.0)))
    assert (verdict.passed, verdict.severity) == (False, "ERROR")
    assert verdict.description.startswith("the provider changed the model behind its name")
    assert "0.0300" in verdict.description
    assert "revision" in verdict.description
    assert "rag-assets plan acme" in verdict.description
    [(probe, distance)] = verdict.offenders
    assert (probe, distance) == ("def area(radius): return 3.14159 * radius ** 2"[:40] + "…", 0.03)
    assert [(row.expected, row.actual) for row in verdict.compared] == [(5, 4)]


def test_the_first_answer_has_nothing_to_be_compared_with() -> None:
    verdict = build_verdict(result(is_new=True))
    assert verdict.passed
    assert "first answer" in verdict.description


def test_an_unavailable_embedder_is_a_warning() -> None:
    verdict = build_verdict(result(distances=(0.0,) * 5, error="no answer within 15 s"))
    assert (verdict.passed, verdict.severity) == (False, "WARN")
    assert "no answer within 15 s" in verdict.description


def test_a_changed_model_stays_an_error_while_its_provider_is_unavailable() -> None:
    verdict = build_verdict(result(distances=(0.5,) * 5, error="no answer within 15 s"))
    assert (verdict.passed, verdict.severity) == (False, "ERROR")
    assert "changed the model" in verdict.description
    assert verdict.notes["not measured now"] == "no answer within 15 s"
