from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.storage.index.model import Candidate
from rag_assets.systems.code_memory.retrieval.question_subject import QuestionKinds
from rag_assets.systems.code_memory.retrieval.steps.expand import (
    RatedCandidate,
    arrange_candidates,
    sum_evidence,
)

NOTHING = QuestionKinds(frozenset(), is_about_tests=False, topic="")


def rated(
    uri: str, score: float, kind: str = "code", symbol: str = "", *, preferred: bool = False
) -> RatedCandidate:
    name = f"{uri}:{symbol}"
    candidate = Candidate(name, uri, "k", 0.0, uri, name, symbol=symbol)
    return RatedCandidate(candidate, score, kind, preferred)


def order(*given: RatedCandidate, asked: QuestionKinds = NOTHING) -> list[str]:
    return [one.id.removesuffix(":") for one in arrange_candidates(given, asked, 10)]


def test_another_file_comes_before_the_second_passage_of_one() -> None:
    first, second = rated("r/a.php", 1.0, symbol="A::x"), rated("r/a.php", 0.9, symbol="A::y")
    found = order(first, second, rated("r/b.php", 0.8))
    assert found == ["r/a.php:A::x", "r/b.php", "r/a.php:A::y"]


def test_the_best_of_each_wanted_kind_comes_first() -> None:
    asked = QuestionKinds(frozenset({"policy"}), is_about_tests=False, topic="")
    models = [rated(f"r/{n}.php", 1.0 - n / 100, "model") for n in range(5)]
    policies = [
        rated("r/P.php", 0.5, "policy", "P::own"),
        rated("r/Q.php", 0.4, "policy", "Q::own"),
    ]
    assert order(*models, *policies, asked=asked)[0] == "r/P.php:P::own"
    assert order(*models, *policies)[-2:] == ["r/P.php:P::own", "r/Q.php:Q::own"]
    # One of a kind is enough: the second one has its own relevance.
    assert order(*models, *policies, asked=asked)[-1] == "r/Q.php:Q::own"


def test_tests_come_later_unless_they_are_asked_for() -> None:
    pair = rated("r/tests/ATest.php", 1.0), rated("r/A.php", 0.6)
    assert order(*pair) == ["r/A.php", "r/tests/ATest.php"]
    about = QuestionKinds(frozenset(), is_about_tests=True, topic="")
    assert order(*pair, asked=about) == ["r/tests/ATest.php", "r/A.php"]


def test_methods_come_before_the_head_of_their_class() -> None:
    head = rated("r/S.php", 1.0, "service", "App\\S")
    assert order(head, rated("r/T.php", 0.8, "service", "App\\T::go"))[0] == "r/T.php:App\\T::go"
    model = rated("r/M.php", 1.0, "model", "App\\M")
    assert order(model, rated("r/T.php", 0.8, "service", "App\\T::go"))[0] == "r/M.php:App\\M"


def test_methods_of_any_language_are_no_heads() -> None:
    method = replace(rated("r/S.java", 1.0, "service", "shop.S.total"), role="method")
    head = replace(rated("r/T.rb", 1.0, "service", "Shop::T"), role="class")
    weaker = rated("r/U.php", 0.8, "service", "App\\U::go")
    assert order(method, weaker) == [method.candidate.id, weaker.candidate.id]
    assert order(head, weaker) == [weaker.candidate.id, head.candidate.id]


def test_preferred_candidates_rank_higher() -> None:
    preferred = rated("r/b.php", 0.6, preferred=True)
    assert order(rated("r/a.php", 1.0), preferred) == ["r/b.php", "r/a.php"]


def test_evidence_for_a_file_is_its_best_passage_and_the_scores_of_the_others() -> None:
    passages = [rated("r/three.go", 0.0, symbol=name) for name in ("a", "b", "related")]
    passages.append(rated("r/one.go", 0.0, symbol="only"))
    candidates = {one.candidate.id: one.candidate for one in passages}
    relevance = {"r/one.go:only": 1.0, "r/three.go:a": 0.5, "r/three.go:b": 0.9}
    relevance["r/three.go:related"] = 0.6
    fused = {"r/one.go:only": 1.8, "r/three.go:a": 0.7, "r/three.go:b": 1.5}
    evidence = sum_evidence(candidates, relevance, fused)
    assert evidence == pytest.approx({"r/one.go": 1.0, "r/three.go": 0.9 + 0.7})


ITEMS = st.lists(
    st.tuples(
        st.sampled_from(["r/a.php", "r/b.php", "r/tests/c.php", "r/docs/d.md"]),
        st.floats(0, 3),
        st.sampled_from(["code", "policy", "model", "doc"]),
        st.sampled_from(["", "A", "A::b", "A::__construct"]),
    ),
    unique_by=lambda one: (one[0], one[3]),
)


@pytest.mark.slow
@given(items=ITEMS, count=st.integers(0, 5))
def test_every_candidate_is_kept_once(items: list[tuple[str, float, str, str]], count: int) -> None:
    given_ = [rated(*item) for item in items]
    asked = QuestionKinds(frozenset({"policy"}), is_about_tests=False, topic="")
    found = arrange_candidates(given_, asked, count)
    assert sorted(one.id for one in found) == sorted(one.candidate.id for one in given_)
