"""Translations are recognized by path, form and repetition; one language stays."""

from __future__ import annotations

import tracemalloc

import pytest

from rag_assets.systems.code_memory.sources.repositories.exclusion import (
    find_superfluous_translations,
)


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
        (["lang/de/a.json", "lang/fr/a.json", "lang/it/a.json", "lang/de/b.json"], "lang/de/a"),
        (["data/de/a.json", "data/en/a.json", "data/it/a.json"], "data/en/a.json"),
        ([f"data/{one}/a.json" for one in ("de", "es", "fr", "it", "pt")], "data/de/a.json"),
        (["po/de.po", "po/fr.po", "po/it.po"], "po/de.po"),
        (["lang/cs/a.php", "lang/en/a.php", "lang/de/a.php", "lang/fr/a.php"], "lang/en/a.php"),
    ],
)
def test_one_language_of_a_text_stays(paths: list[str], kept: str) -> None:
    left = set(paths) - find_superfluous_translations(paths).keys()
    assert any(kept in one for one in left)
    assert len(left) <= 2
    assert len(find_superfluous_translations(paths)) >= 2


@pytest.mark.parametrize(
    "paths",
    [
        ["lang/de/auth.php"],
        ["lang/de/auth.php", "lang/en/auth.php"],
        ["src/is/a.ts", "src/to/a.ts", "src/in/a.ts", "src/id/a.ts"],
        ["app/id.json", "app/name.json", "app/city.json"],
        ["docs/en/a.md", "docs/en/b.md", "docs/en/c.md"],
        [f"config/markets/{one}.yml" for one in ("de", "en", "es", "fr", "it", "pt")],
        [f"deploy/values-{one}.yaml" for one in ("de", "fr", "se")],
        ["app/values.yaml", *(f"app/values-{one}.yaml" for one in ("de", "en", "fr", "se"))],
        [f"data/tax/vat.{one}.json" for one in ("de", "fr", "it")],
        [f"regional/{one}/invoice.xml" for one in ("de", "fr", "it")],
        [f"operators/{one}.json" for one in ("as", "is", "or")],
        [f"src/languages/{one}/rules.ts" for one in ("cs", "ts", "pl", "de")],
    ],
)
def test_what_is_no_translation_stays(paths: list[str]) -> None:
    assert find_superfluous_translations(paths) == {}


def test_long_paths_take_little_memory() -> None:
    paths = [f"{'de/' * 1_000}{number}.json" for number in range(50)]
    tracemalloc.start()
    try:
        assert find_superfluous_translations(paths) == {}
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
