from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import ConfigurationError, UnknownProfile
from rag_assets.plugins.registry import installed_systems
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import apply_profile

ID = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")


@pytest.mark.slow
@given(tenant_id=st.text("abz09._-A /", max_size=8) | st.text(max_size=4))
def test_an_id_is_lower_case_words_joined_by_single_signs(tenant_id: str) -> None:
    if ID.fullmatch(tenant_id):
        assert Tenant.from_config({"id": tenant_id}).id == tenant_id
    else:
        with pytest.raises(ConfigurationError, match="id"):
            Tenant.from_config({"id": tenant_id})


@pytest.mark.parametrize("tenant_id", ["a\n", "a..b", "a...b", "x" * 64])
def test_unsafe_ids_are_rejected(tenant_id: str) -> None:
    with pytest.raises(ConfigurationError, match="id"):
        Tenant.from_config({"id": tenant_id})


def test_an_id_may_have_63_characters() -> None:
    assert Tenant.from_config({"id": "x" * 63}).id == "x" * 63


def test_a_profile_fills_in_unset_fields() -> None:
    tenant = Tenant.from_config({"id": "a", "profile": "documents", "chunker": {"overlap": 20}})
    assert (tenant.chunker.max_tokens, tenant.chunker.overlap) == (220, 20)
    assert Tenant.from_config({"id": "a", "profile": "documents"}).chunker.overlap == 32
    assert tenant.retrieval.top_k == 5


def test_a_profile_is_not_changed_by_its_use() -> None:
    before = repr(installed_systems().profiles)
    apply_profile({"id": "a", "chunker": {"max_tokens": 50}, "retrieval": {"top_k": 1}})
    assert repr(installed_systems().profiles) == before


def test_an_unknown_profile_lists_the_known_ones() -> None:
    with pytest.raises(UnknownProfile) as raised:
        Tenant.from_config({"id": "a", "profile": "nope"})
    assert all(name in (raised.value.hint or "") for name in installed_systems().profiles)


SOURCE = {"name": "files", "type": "files", "root": "/tmp"}


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"colour": "red"}, "colour"),
        ({"retention_days": 0}, "retention_days"),
        ({"freshness_minutes": 0}, "freshness_minutes"),
        ({"chunker": {"max_tokens": 1}}, "max_tokens"),
        ({"chunker": {"chunker": "nope"}}, "choose one of: heading, recursive, sentence, record"),
        ({"chunker": {"max_characters": 100}}, "max_characters"),
        ({"chunkers": [{"formats": ["csv"]}]}, "chunkers.0.chunker"),
        ({"chunkers": [{"chunker": "record"}]}, "neither formats, sources nor source_types"),
        ({"chunkers": [{"chunker": "record", "formats": ["nope"]}]}, "is not a known format"),
        ({"chunkers": [{"chunker": "record", "sources": ["x"]}]}, "no source is named 'x'"),
        ({"retrieval": {"top_k": 101}}, "top_k"),
        ({"retrieval": {"min_score": 2}}, "min_score"),
        ({"retrieval": {"mode": "magic"}}, "mode"),
        ({"parser": {"seconds": 0}}, "seconds"),
        ({"parser": {"seconds": float("inf")}}, "seconds"),
        ({"parser": {"seconds": float("nan")}}, "seconds"),
        ({"index": {"vector_index": "flat"}}, "vector_index"),
        ({"access": {"scope": ""}}, "scope"),
        ({"sources": [SOURCE, SOURCE]}, "two sources with the same name"),
        ({"sources": [{**SOURCE, "name": "A B"}]}, "name"),
        ({"sources": [{**SOURCE, "include": []}]}, "include"),
    ],
)
def test_an_invalid_field_is_named(config: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigurationError, match=where) as raised:
        Tenant.from_config({"id": "acme", **config})
    assert "acme" in raised.value.message
    assert raised.value.hint
    assert "\n" not in raised.value.message


def test_passwords_are_references_and_never_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for literal in ("opensesame", "$", "$a b", "${NAME}", "x$NAME"):
        with pytest.raises(ConfigurationError) as caught:
            Tenant.from_config({"id": "a", "parser": {"passwords": ["$NAME", literal]}})
        assert "parser.passwords" in caught.value.message
        assert literal not in caught.value.message.replace("parser.passwords", "")
    tenant = Tenant.from_config({"id": "a", "parser": {"passwords": ["$FIRST", "$SECOND"]}})
    monkeypatch.setenv("FIRST", "one")
    with pytest.raises(ConfigurationError, match="the environment variable SECOND, which is not"):
        _ = tenant.parser.options
    monkeypatch.setenv("SECOND", "two")
    assert tenant.parser.options.passwords == ("one", "two")
    assert "one" not in f"{tenant!r} {tenant.model_dump()}".replace("None", "")


def test_languages_of_ocr_are_required_where_ocr_is_on(tmp_path: Path) -> None:
    parser = {"ocr": True, "ocr_languages": ["eng", "deu"], "ocr_data": str(tmp_path)}
    with pytest.raises(ConfigurationError, match=r"eng\.traineddata is not in"):
        _ = Tenant.from_config({"id": "a", "parser": parser}).parser.options
    off = Tenant.from_config({"id": "a", "parser": {**parser, "ocr": False}})
    assert off.parser.options.ocr_languages == ("eng", "deu")
    with pytest.raises(ConfigurationError, match=r"ocr_languages"):
        Tenant.from_config({"id": "a", "parser": {"ocr_languages": ["../eng"]}})
