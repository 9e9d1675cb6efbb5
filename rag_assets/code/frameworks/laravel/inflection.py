"""Laravel's words: plural and singular nouns, the cases of names, and the names made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from rag_assets.code.frameworks.laravel import inflection_rules as rules

_COUNTABLE_END = re.compile(r"[A-Za-z0-9\u0080-\uffff]\n?\Z")
_BEFORE_CAPITAL = re.compile(r"([^\n])(?=[A-Z])")
_SPACES = re.compile(r"\s+")
_LONGEST = 256


@lru_cache(maxsize=8192)
def plural(word: str) -> str:
    """The plural of an English noun as `Str::plural` has it.

    Args:
        word: a noun, or words that end in one; longer than any name, it stays as it is.
    """
    if len(word) > _LONGEST or word.lower() in rules.UNCOUNTABLE or not _COUNTABLE_END.search(word):
        return word
    return _in_case(_inflected(word, "plural"), word)


@lru_cache(maxsize=8192)
def singular(word: str) -> str:
    """The singular of an English noun as `Str::singular` has it.

    Args:
        word: see `plural`.
    """
    if len(word) > _LONGEST or not word:
        return word
    return _in_case(_inflected(word, "singular"), word)


def plural_studly(name: str) -> str:
    """The plural of the last word of a name in studly case: InvoiceLine, InvoiceLines."""
    cut = max((found.end() for found in _BEFORE_CAPITAL.finditer(name)), default=0)
    return name[:cut] + plural(name[cut:])


def snake(name: str) -> str:
    """A name in snake case as `Str::snake` has it: InvoiceLine, invoice_line."""
    if name and all("a" <= letter <= "z" for letter in name):
        return name
    words = re.sub(
        r"(^|[ \t\r\n\f\v])([a-z])", lambda found: found.group(1) + found.group(2).upper(), name
    )
    return _BEFORE_CAPITAL.sub(r"\1_", _SPACES.sub("", words)).lower()


def studly(name: str) -> str:
    """A name in studly case as `Str::studly` has it: invoice_line, InvoiceLine."""
    words = name.replace("-", " ").replace("_", " ").split(" ")
    return "".join(word[:1].upper() + word[1:] for word in words)


def camel(name: str) -> str:
    """A name in camel case as `Str::camel` has it: invoice_line, invoiceLine."""
    made = studly(name)
    return made[:1].lower() + made[1:] if made[:1].isascii() else made


def table_of_class(name: str, *, pivot: bool = False) -> str:
    r"""The table of a model that states none.

    Args:
        name: of the class, with or without its namespace (`App\\Models\\InvoiceLine`).
        pivot: whether it is a pivot's class, whose table is in the singular.
    """
    base = class_basename(name)
    return snake(singular(base)) if pivot else snake(plural_studly(base))


def class_basename(name: str) -> str:
    """The name of a class without its namespace."""
    return name.rsplit("\\", 1)[-1]


def joining_table(*classes: str) -> str:
    """The table between two models: their names in snake case, in order.

    Args:
        classes: names of both classes.
    """
    return "_".join(sorted(snake(class_basename(name)) for name in classes)).lower()


def morph_table(name: str) -> str:
    """The table of a polymorphic many-to-many relation: taggable, taggables."""
    head, underscore, last = name.rpartition("_")
    return head + underscore + plural(last)


def _inflected(word: str, form: str) -> str:
    """The word by the first rule that changes it."""
    if _uninflected(form).fullmatch(word):
        return word
    irregular = _irregular(form).get(word.lower())
    if irregular is not None:
        return irregular[0].upper() + irregular[1:] if word[0].lower() != word[0] else irregular
    for pattern, replacement in _patterns(form):
        if pattern.search(word):
            return pattern.sub(replacement, word)
    return word


@cache
def _uninflected(form: str) -> re.Pattern[str]:
    further: Iterable[str] = (
        (*rules.NO_PLURAL, r"\w+ware") if form == "plural" else (*rules.NO_SINGULAR, ".*ss")
    )
    every = (*rules.UNINFLECTED_PATTERNS, *rules.UNINFLECTED, *further)
    return re.compile(f"(?:{'|'.join(every)})\n?", re.IGNORECASE | re.ASCII)


@cache
def _irregular(form: str) -> dict[str, str]:
    if form == "plural":
        return dict(rules.IRREGULAR)
    return {many: one for one, many in rules.IRREGULAR}


@cache
def _patterns(form: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    chosen = rules.PLURAL if form == "plural" else rules.SINGULAR
    flags = re.IGNORECASE | re.ASCII
    return tuple((re.compile(pattern, flags), replacement) for pattern, replacement in chosen)


def _in_case(word: str, like: str) -> str:
    """The word in the case of another one: lower, upper, or with a capital."""
    if like.lower() == like:
        return word.lower()
    if like.upper() == like:
        return word.upper()
    if not "a" <= like[:1] <= "z":
        return word[:1].upper() + word[1:] if word[:1].isascii() else word
    return word
