from __future__ import annotations

from typing import Any

import pytest

from rag_assets.errors import ConfigurationError
from rag_assets.retrieval.answers import AnswerRequest


@pytest.mark.parametrize("value", [True, "5", 0, 1_000_000, 1.5])
@pytest.mark.parametrize("field", ["top_k", "token_budget", "max_tokens"])
def test_what_is_no_number_within_bounds_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=field):
        AnswerRequest.of(query="why?", **{field: value})


def test_numbers_are_taken_as_json_has_them() -> None:
    assert AnswerRequest.of(query="why?", top_k=5.0, min_score=1, max_tokens=16).top_k == 5
    with pytest.raises(ConfigurationError, match="min_score"):
        AnswerRequest.of(query="why?", min_score=False)


@pytest.mark.parametrize("path", ["p" * 1_001, "\U0001f600" * 501], ids=["letters", "faces"])
def test_paths_are_no_longer_than_the_index_takes(path: str) -> None:
    with pytest.raises(ConfigurationError, match="paths"):
        AnswerRequest.of(query="why?", filters={"paths": [path]})
    with pytest.raises(ConfigurationError, match="must_include_paths"):
        AnswerRequest.of(query="why?", must_include_paths=[path])
    assert AnswerRequest.of(query="why?", filters={"paths": ["\U0001f600" * 500]})
