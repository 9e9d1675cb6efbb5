"""The benchmark of the service: its questions, its cases, its percentiles."""

import random
from dataclasses import replace

from benchmarks import prose
from benchmarks.serving.cases import Case, cases
from benchmarks.serving.questions import drawn
from benchmarks.serving.runner import percentiles


def test_questions_are_distinct_in_the_words_of_the_texts_and_always_the_same() -> None:
    texts = [prose.document(random.Random(n), 5) for n in range(20)]
    questions = drawn(texts, 500)
    assert len(set(questions)) == 500
    assert questions == drawn(texts, 500)
    said = " ".join(texts)
    assert all(question.rstrip("?").split(" ", 6)[-1] in said for question in questions)


def test_each_case_of_ours_has_a_bare_one_beside_it() -> None:
    found = cases(["bench", "small"])
    ours = {case for case in found if case.target == "service" and not case.repeated}
    bare = {replace(case, target="service") for case in found if case.target == "bare"}
    assert ours == bare
    assert replace(Case("service"), every_round=True) in ours


def test_percentiles_are_times_that_were_measured() -> None:
    latencies = [number / 1_000 for number in range(1, 201)]
    assert percentiles(latencies) == {"p50": 100.0, "p95": 190.0, "p99": 198.0}
    assert percentiles([0.5]) == {"p50": 500.0, "p95": 500.0, "p99": 500.0}
