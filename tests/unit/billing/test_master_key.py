from __future__ import annotations

import base64

import pytest

from rag_assets.billing.master_key import MasterKey, MasterKeys, read_environment_keys
from rag_assets.common.errors import ConfigurationError

KEY = base64.b64encode(bytes(range(32))).decode()
OTHER = base64.b64encode(bytes(32)).decode()


def test_the_environment_gives_the_present_key_and_the_one_before() -> None:
    assert read_environment_keys({}) is None
    keys = read_environment_keys(
        {"RAG_ASSETS_MASTER_KEY": KEY, "RAG_ASSETS_MASTER_KEY_PREVIOUS": f"{OTHER}\n"}
    )
    assert keys is not None
    assert keys.present.secret == bytes(range(32))
    assert keys.find(keys.present.id) is keys.present
    assert keys.find(MasterKey.from_secret(bytes(32)).id) == keys.former[0]
    assert keys.find("another") is None


@pytest.mark.parametrize(
    "text", ["secret-but-not-base64", KEY[:-8], base64.b64encode(bytes(33)).decode(), "=", "\n"]
)
def test_what_is_no_key_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_environment_keys({"RAG_ASSETS_MASTER_KEY": text})
    assert "RAG_ASSETS_MASTER_KEY" in refused.value.message
    assert text.strip() == "" or text not in refused.value.advice.replace("=", "", 1)


def test_the_key_before_alone_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError, match="is set without RAG_ASSETS_MASTER_KEY"):
        read_environment_keys({"RAG_ASSETS_MASTER_KEY_PREVIOUS": KEY})


def test_neither_bytes_nor_text_of_a_key_are_shown() -> None:
    keys = MasterKeys(MasterKey.parse(KEY, "here"), (MasterKey.random(),))
    for shown in (repr(keys), str(keys.present), f"{keys}"):
        assert repr(bytes(range(32)))[2:20] not in shown
        assert KEY not in shown
        assert keys.present.id in shown
    assert keys.present.id not in {keys.present.secret.hex()[:16], KEY[:16]}
