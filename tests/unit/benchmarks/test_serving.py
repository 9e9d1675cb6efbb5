import random
from dataclasses import replace

from benchmarks import prose
from benchmarks.serving.cases import LoadCase, list_cases
from benchmarks.serving.questions import draw_questions
from benchmarks.serving.runner import compute_percentiles


def test_draw_questions_returns_distinct_reproducible_phrases_of_the_texts() -> None:
    texts = [prose.draw_document(random.Random(n), 5) for n in range(20)]
    questions = draw_questions(texts, 500)
    assert len(set(questions)) == 500
    assert questions == draw_questions(texts, 500)
    said = " ".join(texts)
    assert all(question.rstrip("?").split(" ", 6)[-1] in said for question in questions)


def test_each_case_of_the_service_has_a_bare_counterpart() -> None:
    found = list_cases(["bench", "small"])
    ours = {case for case in found if case.target == "service" and not case.repeated}
    bare = {replace(case, target="service") for case in found if case.target == "bare"}
    assert ours == bare
    assert replace(LoadCase("service"), every_round=True) in ours


def test_percentiles_are_measured_times() -> None:
    latencies = [number / 1_000 for number in range(1, 201)]
    assert compute_percentiles(latencies) == {"p50": 100.0, "p95": 190.0, "p99": 198.0}
    assert compute_percentiles([0.5]) == {"p50": 500.0, "p95": 500.0, "p99": 500.0}
