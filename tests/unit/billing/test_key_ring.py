import pytest
from pydantic import SecretStr

from rag_assets.billing.key_ring import require_key
from rag_assets.common.errors import ConfigurationError

KEY = "sk-proj-planted0123456789abcdefWXYZ"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "is empty"),
        ("$OPENAI_API_KEY", "a reference to an environment variable"),
        (f"{KEY} {KEY}", "white space"),
        (f"{KEY}\n{KEY}", "white space"),
        (f"{KEY}\x1b[2J", "control characters"),
        (f"{KEY}\x7f", "control characters"),
        (f"{KEY}ü", "HTTP headers do not allow"),
        (KEY * 200, "too long"),
    ],
)
def test_an_impossible_key_is_refused_and_not_quoted(given: str, why: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        require_key(SecretStr(given))
    assert why in refused.value.message
    assert KEY[:12] not in refused.value.advice
    assert "OPENAI" not in refused.value.advice


def test_keys_of_all_providers_are_taken() -> None:
    for key in (KEY, "AIza" + "x" * 35, "none", "a-b_c.d~e/f+g=", "Bearer:x"):
        require_key(SecretStr(key))
