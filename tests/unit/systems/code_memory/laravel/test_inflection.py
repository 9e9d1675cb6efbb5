"""Laravel's inflection in Python, compared with Laravel's own `Str`."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.systems.code_memory.laravel.inflection import (
    joining_table,
    morph_table,
    plural,
    plural_studly,
    singular,
    snake,
    table_of_class,
)
from tests.unit.systems.code_memory.laravel.schema_truth import EXAMPLE, words_by_laravel

PROSE = Path(__file__).parents[5]
PACKAGE = files("rag_assets.systems.code_memory.laravel")
RULES = tomllib.loads(PACKAGE.joinpath("inflection.toml").read_text("utf-8"))
ODD = [
    "Ox", "oxen", "Mouse", "mice", "Matrix", "index", "vertices", "StatusPage", "status",
    "statuses", "Person", "people", "Child", "sales_person", "UserFeedback", "Feedback",
    "Metadata", "MediaFile", "Medium", "media", "Series", "News", "equipment", "Hardware",
    "software", "analysis", "analyses", "Criterion", "tax", "taxes", "axes", "hero", "photo",
    "wolf", "Wife", "Proof", "quiz", "bus", "alias", "movie", "shoe", "Canvas", "passerby",
    "runner-up", "Address", "addresses", "process", "Category", "Day", "soliloquy", "Company",
    "SMS", "API", "URLs", "ID", "OAuthToken", "IPAddress", "FAQ", "faq", "tooth", "goose",
    "leaf", "Curriculum", "datum", "bacteria", "parentheses", "", "invoice2", "a", "S", "x-y",
    "foo bar", "Foo Bar", "fooBar", "café", "naïve", "Über", "cafe", "money", "monies",
    "Staff", "man", "Woman", "human", "german", "chateau", "beau", "Expense!", "v2_Thing",
    "__odd__", "snake_case_thing", "kebab-case-thing", "Trailing ", " leading", "A1B2", "gas",
    "gases", "us", "bonus", "virus", "viri", "cactus", "stimuli", "hives", "gulf", "drives",
]  # fmt: skip


def ours(word: str) -> list[str]:
    return [plural(word), singular(word), snake(word), snake(plural_studly(word))]


def prose() -> set[str]:
    """Return the words of this project's texts, and the names in its example."""
    texts = [*PROSE.glob("docs/**/*.md"), *(PROSE / "examples").rglob("*.md")]
    texts += EXAMPLE.rglob("*.php")
    words: set[str] = set()
    for path in texts:
        words.update(re.findall(r"[A-Za-z][A-Za-z_-]{1,30}", path.read_text(encoding="utf-8")))
    return words


@pytest.mark.slow
def test_words_are_laravels() -> None:
    listed = [word for pair in RULES["irregular"] for word in pair]
    listed += RULES["uninflected"] + RULES["uncountable"]
    words = sorted({*prose(), *ODD, *listed, *map(str.title, listed), *map(str.upper, listed)})
    assert len(words) > 8000
    differing = {
        word: (mine, theirs)
        for word, theirs in zip(words, words_by_laravel(words), strict=True)
        if (mine := ours(word)) != theirs
    }
    assert differing == {}


ENDINGS = sorted(
    {
        re.sub(r"[^a-z]", "", pattern.replace("es)*", ""))
        for pattern, _ in (*RULES["singular"], *RULES["plural"])
    }
)
LETTERS = st.text("abcdefghijklmnopqrstuvwxyzABCDXYZ_- 09", max_size=8)


@pytest.mark.slow
@settings(max_examples=3)
@given(st.lists(st.tuples(LETTERS, st.sampled_from(ENDINGS)), min_size=400, max_size=800))
def test_made_words_are_laravels(made: list[tuple[str, str]]) -> None:
    words = sorted({head + end for head, end in made})
    assert [ours(word) for word in words] == words_by_laravel(words)


@pytest.mark.parametrize(
    ("name", "pivot", "table"),
    [
        ("App\\Models\\InvoiceLine", False, "invoice_lines"),
        ("Company", False, "companies"),
        ("UserFeedback", False, "user_feedback"),
        ("App\\RoleUser", True, "role_user"),
        ("Memberships", True, "membership"),
    ],
    ids=["namespace", "y", "uncountable", "pivot", "pivot-plural"],
)
def test_a_class_names_its_table(name: str, pivot: bool, table: str) -> None:
    assert table_of_class(name, pivot=pivot) == table


def test_joined_tables_follow_from_both_classes() -> None:
    assert joining_table("App\\User", "App\\Models\\Role") == "role_user"
    assert morph_table("taggable") == "taggables"
    assert morph_table("tagged_item") == "tagged_items"
