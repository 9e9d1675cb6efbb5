import pytest

from rag_assets.models.chat import find_context_window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o-2024-11-20", 128_000),
        ("openai/gpt-4o-mini", 128_000),
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("gpt-4.1-mini", 1_047_576),
        ("claude-sonnet-4", 200_000),
        ("anthropic/claude-2.0", 100_000),
        ("gemini-2.5-pro", 1_048_576),
        ("llama-3.1-70b", 128_000),
        ("GPT-4O", 128_000),
        ("gpt-5.1", 400_000),
        ("openai/gpt-oss-120b", 131_072),
        ("gemini-3-pro-preview", 1_048_576),
        ("x-ai/grok-4-0709", 256_000),
        ("grok-4-fast-reasoning", 2_000_000),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 1_048_576),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 10_485_760),
    ],
)
def test_a_model_has_the_window_of_its_longest_known_beginning(model: str, window: int) -> None:
    assert find_context_window(model) == window


@pytest.mark.parametrize("model", ["", "gpt", "gpt-40", "mine", "o11"])
def test_other_models_have_no_known_window(model: str) -> None:
    assert find_context_window(model) is None
