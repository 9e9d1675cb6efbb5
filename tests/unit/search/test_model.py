from typing import Any

import pytest

from rag_assets.common.errors import InvalidRequest
from rag_assets.search.answers import AnswerRequest
from rag_assets.search.model import Filters


@pytest.mark.slow
@pytest.mark.parametrize("value", [True, "5", 0, 1_000_000_001, 1.5])
@pytest.mark.parametrize("field", ["top_k", "token_budget", "max_tokens"])
def test_what_is_no_number_within_bounds_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidRequest, match=field):
        AnswerRequest.of(query="why?", **{field: value})


def test_numbers_are_taken_as_json_has_them() -> None:
    assert AnswerRequest.of(query="why?", top_k=5.0, min_score=1, max_tokens=16).top_k == 5
    with pytest.raises(InvalidRequest, match="min_score"):
        AnswerRequest.of(query="why?", min_score=False)


@pytest.mark.parametrize("path", ["p" * 1_000, "\U0001f600" * 500], ids=["letters", "faces"])
def test_paths_are_no_longer_than_the_index_takes(path: str) -> None:
    with pytest.raises(InvalidRequest, match="paths"):
        AnswerRequest.of(query="why?", filters={"paths": [path]})
    with pytest.raises(InvalidRequest, match="must_include_paths"):
        AnswerRequest.of(query="why?", must_include_paths=[path])
    assert AnswerRequest.of(query="why?", filters={"paths": ["\U0001f600" * 499]})


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        (2024, {"2024", "2024.0"}),
        (2024.0, {"2024", "2024.0"}),
        ("2024", {"2024", "2024.0"}),
        (-2.5, {"-2.5"}),
        (1e-7, {"1e-07", "1e-7"}),
        (True, {"true"}),
        ("1.10", {"1.10"}),
        ("007", {"007"}),
        ("2024-06", {"2024-06"}),
        ((2024, None, "draft"), {"2024", "2024.0", None, "draft"}),
        ((), set()),
    ],
)
def test_numbers_in_metadata_stand_for_all_their_spellings(given: Any, spelled: set[Any]) -> None:
    assert set(Filters(metadata={"year": given}).wanted_metadata["year"]) == spelled


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"languages": ["de", "German"]}, "filters.languages.1: it must be an ISO 639-1 code"),
        ({"modified_after": "2026-11-21", "modified_before": "2026-11-21"},
         "modified_after must be earlier than modified_before"),
    ],
)  # fmt: skip
def test_filters_that_nothing_could_match_are_refused(filters: Any, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named) as refused:
        AnswerRequest.of(query="why?", filters=filters)
    assert "German" not in refused.value.advice
