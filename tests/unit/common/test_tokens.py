import pytest

from rag_assets.common.tokens import count_text, count_tokens

TEXTS = [
    "", "one", "<|endoftext|>", "文書 and prose\n" * 50, "half a \ud83d character", "x" * 5_000,
]  # fmt: skip


@pytest.mark.parametrize("copies", [1, 20])
def test_few_texts_have_the_counts_that_many_have(copies: int) -> None:
    assert count_tokens(TEXTS * copies) == [count_text(text) for text in TEXTS] * copies


def test_tokens_are_those_of_cl100k_base() -> None:
    assert count_tokens(["", "hello world", "🧠", "    x"]) == [0, 2, 3, 2]
    assert count_text("tiktoken is great!") == 6
    assert count_text("<|endoftext|>") > 1
