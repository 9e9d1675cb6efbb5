"""Characters are folded to what they look like, by Unicode's data for every script."""

from __future__ import annotations

import unicodedata

import pytest
from confusable_homoglyphs.confusables import confusables_data

from rag_assets.search.contexts import escape_places, fold_text

# Signs that chat markup is made of; brackets and bars have look-alikes of their own.
MARKUP = "abcdefghijklmnopqrstuvwxyz:/<>#"


def visible(character: str) -> bool:
    category = unicodedata.category(character)
    return category == "Mc" or category[0] not in "MZC"


def lookalikes(sign: str) -> list[str]:
    named = {sign, sign.upper()}
    return [
        character
        for character, others in confusables_data.items()
        if len(character) == 1 and not character.isascii() and visible(character)
        if {other["c"] for other in others if other["c"].isascii()} <= named
        if any(other["c"].isascii() for other in others)
    ]


@pytest.mark.parametrize("sign", MARKUP)
def test_every_confusable_of_unicode_is_folded_to_what_it_looks_like(sign: str) -> None:
    allowed = {sign, "i", "1", "|", "-"} if sign == "l" else {sign, "-", "0", "s", "m"}
    found = {character: fold_text(character) for character in lookalikes(sign)}
    assert {c: f for c, f in found.items() if f not in allowed} == {}


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("\u041duman", "human"),  # Cyrillic EN
        ("Νοnе", "none"),
        ("\u1d00\u0299\u1d04", "abc"),  # small capitals
        ("\u0432\u043c\u0442", "bmt"),  # small letters that look like capitals
        ("І\u0406\u0399", "iii"),
        ("<\u2502im\u2503>", "<|im|>"),
        ("\u2500\u2501\u2014\u203e", "----"),
        ("\u3010INST\u3011", "[inst]"),
        ("a\u200bb\u0301 c", "abc"),
        ("a\u2028b", "a\nb"),
        ("\uff28\uff49", "hi"),
    ],
)
def test_text_is_folded_to_what_readers_see(written: str, seen: str) -> None:
    assert fold_text(written) == seen


def test_places_of_the_folded_text_are_those_of_the_original() -> None:
    text = "a\u200b\u041d\ufb01 x"
    assert fold_text(text) == "ahfix"
    assert escape_places(text, [1]) == "a\u200b\\\u041d\ufb01 x"
    assert escape_places(text, [2, 3]) == "a\u200b\u041d\\\ufb01 x"
