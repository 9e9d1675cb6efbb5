"""Laravel's inflection: plural and singular nouns, letter cases of names, and derived names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

_COUNTABLE_END = re.compile(r"[A-Za-z0-9\u0080-\uffff]\n?\Z")
_BEFORE_CAPITAL = re.compile(r"([^\n])(?=[A-Z])")
_SPACES = re.compile(r"\s+")
_MAX_WORD_CHARACTERS = 256


@lru_cache(maxsize=8192)
def plural(word: str) -> str:
    """Return the plural of an English noun as `Str::plural` does; long words stay as they are."""
    if (
        len(word) > _MAX_WORD_CHARACTERS
        or word.lower() in _load_rules()["uncountable"]
        or not _COUNTABLE_END.search(word)
    ):
        return word
    return _match_case(_inflect(word, "plural"), word)


@lru_cache(maxsize=8192)
def singular(word: str) -> str:
    """Return the singular of an English noun as `Str::singular` does."""
    if len(word) > _MAX_WORD_CHARACTERS or not word:
        return word
    return _match_case(_inflect(word, "singular"), word)


def plural_studly(name: str) -> str:
    """Return a studly name with its last word in the plural: InvoiceLines for InvoiceLine."""
    cut = max((match.end() for match in _BEFORE_CAPITAL.finditer(name)), default=0)
    return name[:cut] + plural(name[cut:])


def snake(name: str) -> str:
    """Return a name in snake case as `Str::snake` does: invoice_line for InvoiceLine."""
    if name and all("a" <= letter <= "z" for letter in name):
        return name
    words = re.sub(
        r"(^|[ \t\r\n\f\v])([a-z])", lambda match: match.group(1) + match.group(2).upper(), name
    )
    return _BEFORE_CAPITAL.sub(r"\1_", _SPACES.sub("", words)).lower()


def table_of_class(name: str, *, pivot: bool = False) -> str:
    """Return the conventional table of a model; a pivot class has a singular table name."""
    base = class_basename(name)
    return snake(singular(base)) if pivot else snake(plural_studly(base))


def class_basename(name: str) -> str:
    """Return the name of a class without its namespace."""
    return name.rsplit("\\", 1)[-1]


def joining_table(*classes: str) -> str:
    """Return the pivot table of two models: their names in snake case, in alphabetical order."""
    return "_".join(sorted(snake(class_basename(name)) for name in classes)).lower()


def morph_table(name: str) -> str:
    """Return the table of a polymorphic many-to-many relation: taggables for taggable."""
    head, underscore, last = name.rpartition("_")
    return head + underscore + plural(last)


def _inflect(word: str, form: str) -> str:
    """Return the `singular` or `plural` form of a word by the first matching inflection rule."""
    unchanged, irregular_forms, patterns = _load_form_rules(form)
    if unchanged.fullmatch(word):
        return word
    irregular = irregular_forms.get(word.lower())
    if irregular is not None:
        return irregular[0].upper() + irregular[1:] if word[0].lower() != word[0] else irregular
    for pattern, replacement in patterns:
        if pattern.search(word):
            return pattern.sub(replacement, word)
    return word


@cache
def _load_rules() -> Mapping[str, Any]:
    return tomllib.loads(files(__package__).joinpath("inflection.toml").read_text("utf-8"))


@cache
def _load_form_rules(
    form: str,
) -> tuple[re.Pattern[str], Mapping[str, str], Sequence[tuple[re.Pattern[str], str]]]:
    """Return the rules of a form: words that stay unchanged, irregular words, and patterns."""
    flags, tables = re.IGNORECASE | re.ASCII, _load_rules()
    unchanged = "|".join((*tables["uninflected"], *tables[f"no_{form}"]))
    irregular = dict(tables["irregular"])
    if form == "singular":
        irregular = {many: single for single, many in tables["irregular"]}
    patterns = [(re.compile(pattern, flags), by) for pattern, by in tables[form]]
    return re.compile(f"(?:{unchanged})\n?", flags), irregular, patterns


def _match_case(word: str, like: str) -> str:
    """Return the word with the letter case of `like`: lower, upper, or capitalized."""
    if like.lower() == like:
        return word.lower()
    if like.upper() == like:
        return word.upper()
    if not "a" <= like[:1] <= "z":
        return word[:1].upper() + word[1:] if word[:1].isascii() else word
    return word
