"""Translations are recognized by place, form and repetition; one language of them stays."""

from __future__ import annotations

import pytest

from rag_assets.ingest.sources.repositories.translations import left_out_translations


@pytest.mark.parametrize(
    ("paths", "kept"),
    [
        (["lang/de/auth.php", "lang/en/auth.php", "lang/pt_BR/auth.php"], "lang/en/auth.php"),
        (
            ["public/intl/de-DE.json", "public/intl/en-US.json", "public/intl/zh-Hant.json"],
            "public/intl/en-US.json",
        ),
        (["config/locales/d.de.yml", "config/locales/d.en.yml", "config/locales/d.fr.yml"], "d.en"),
        (["i/m.properties", "i/m_de.properties", "i/m_fr.properties", "i/m_it.properties"], "i/m."),
        (["src/locales/de.ts", "src/locales/en.ts", "src/locales/ja.ts"], "src/locales/en.ts"),
        (["data/de/a.json", "data/fr/a.json", "data/it/a.json", "data/de/b.json"], "data/de/a"),
    ],
)
def test_one_language_of_a_text_stays(paths: list[str], kept: str) -> None:
    left = set(paths) - left_out_translations(paths)
    assert any(kept in one for one in left)
    assert len(left) <= 2
    assert len(left_out_translations(paths)) >= 2


@pytest.mark.parametrize(
    "paths",
    [
        ["lang/de/auth.php"],
        ["lang/de/auth.php", "lang/en/auth.php"],
        ["src/is/a.ts", "src/to/a.ts", "src/in/a.ts", "src/id/a.ts"],
        ["app/id.json", "app/name.json", "app/city.json"],
        ["docs/en/a.md", "docs/en/b.md", "docs/en/c.md"],
    ],
)
def test_what_is_no_translation_stays(paths: list[str]) -> None:
    assert left_out_translations(paths) == frozenset()
