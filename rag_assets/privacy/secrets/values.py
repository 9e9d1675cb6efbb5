"""Classification of values: passwords, keys and PINs, or code and placeholders."""

from __future__ import annotations

import re
from enum import StrEnum
from itertools import pairwise

from rag_assets.privacy.secrets.placeholders import (
    WORDS,
    is_placeholder,
    is_sentence_word,
    is_token_placeholder,
)

_SEVERAL = 3
_SHORT = 4
_MIN_LONG_LENGTH = 24
_MIN_PASSWORD_LENGTH = 6
_MIN_KEY_LENGTH = 16
_MIN_NAMED_KEY_LENGTH = 8
_MAX_PIN_LENGTH = 8
_MAX_SWITCHES = 3
_MIN_GENERATED_LENGTH = 20
_ALGORITHM = re.compile(
    r"(?:sha|md|pbkdf|argon|aes|base|utf|oauth|http|ipv|rfc|hs|rs|es|ps|ed|tls|ssl|v|iso|id|x|p|k)"
    r"[-_]?v?\d{1,4}(?:[-_.]\w{1,10}){0,3}",
    re.IGNORECASE,
)
_QUANTITY = re.compile(
    r"\d+(?:[.,:/-]\d+)*(?:px|em|rem|ms|s|m|h|d|%|kb|mb|gb|k|th|st|nd|rd|x)?\b", re.I
)
HOST_NAME = re.compile(r"(?:[a-z0-9-]{1,63}\.){1,10}[a-z]{2,24}(?![A-Za-z0-9_.-]*[A-Za-z0-9_-])")
"""A lower-case name of a host or a file; it never continues a token that a layout wrapped."""
_MIN_SYMBOLS = 7
_MARKS = "!@#$%^&*?+~=§€£"
_PATH = re.compile(r"(?:\.{0,2}|~)/(?![^/.]*[A-Z][^/.]*\d|[^/.]*\d[^/.]*[A-Z])|file:|\\\\|[a-z]:\\")
_CODE = re.compile(
    r"[A-Za-z_$][\w$.:>-]*[(\[{]"  # a call or an index
    r"|[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][\w$]*)+$"  # a member
    r"|[({\[]|![01]\b|\\[A-Za-z]|[&*!|](?:$|[ \t]|[A-Za-z_][\w.]*[{(\[.]|[A-Za-z_]+$)"  # an expression, an alias
)
_CODE_WITHIN = re.compile(r"\?\.|::|\}=|\}catch|\]\(|->|=>|\(\)|^[\w.]+\([^)]*$")
_CREDENTIAL = r"(?:password|passwd|secret|token|key|credential)s?"
_ACTION = (
    r"(?:change|confirm|create|edit|forgot|new|recover|refresh|request|reset|revoke|rotate|set"
    r"|update|verify)"
)
_ON_CREDENTIAL = rf"(?:(?:{_ACTION}[-_])+{_CREDENTIAL}|{_CREDENTIAL}(?:[-_]{_ACTION})+)"
_REST_ACTION = r"(?:index|show|new|create|edit|update|destroy|delete)"
_ROUTE = re.compile(
    r"(?:[A-Za-z]+(?:/|\\{1,2}|::|[.:]))*(?:[A-Z][a-z]*\d?)+Controller(?:(?:[@#.:]|::|->)[a-z]\w*)?"
    rf"|(?:[a-z_]+/)+[a-z_]+#(?:{_REST_ACTION}|{_ON_CREDENTIAL})"
    rf"|[a-z_]+s#{_REST_ACTION}|[a-z_]+#{_ON_CREDENTIAL}"
    rf"|(?:[a-z]+(?:[-_][a-z]+)*[/:])+{_ON_CREDENTIAL}"
    r"|(?:[a-z_]+/)+(?:passwords|secrets|tokens|keys|credentials)"
)
"""Matches a handler (`users/passwords#update`) or a name (`site/reset-password`) of a route. The
words are few on purpose: `root:mysecret` may be a user with a password."""
_MEMBER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NAME_WORDS = re.compile(
    r"(?i:passw|passphr|(?<![a-z])pass(?![a-z])|pwd|secret|token|(?<![a-z])key(?![a-z])|credential"
    r"|kennwort|contrase|senha|wachtwoord|parola|clave|geheim)|[a-z](?:Pass|Key|Pwd)(?![a-z])"
)
_TITLE_WORD = re.compile(r"[A-Z][a-z]+(?:\[.*\])?")
_PHRASE = re.compile(r"[^\W\d_]{2,20}(?:[ -][^\W\d_]{2,20}){3,7}")
_BASE32 = re.compile(r"(?=\D*\d)[A-Z2-7]{16,}={0,6}")
_CAPITALS = re.compile(r"[A-Z]{2,}(?=[a-z])|(?<=[a-z])[A-Z]{2,}")
_NUMBERED = re.compile(r"\d\d|\d[A-Za-z]+\d")
_NAMED = re.compile(r"[A-Za-z]+\d{0,4}|\d{1,4}")


_TYPE_NAME = re.compile(r"(?:[A-Z]\d(?:alpha|beta)?\d?)?(?:[A-Z][a-z]+){2,8}\d?(?:\[\])?")


class ValueKind(StrEnum):
    """The kind of value that a name announces.

    A pair is a user with a password. A random value is a credential only if it looks generated,
    because its name may mean something else, such as a key of a dictionary.
    """

    PASSWORD = "password"  # noqa: S105 - a word
    KEY = "key"
    PIN = "pin"
    PAIR = "pair"
    RANDOM = "random"


def is_mixed(value: str) -> bool:
    """Return whether a value has capitals, lower-case letters and digits, as in base64."""
    return (
        any(c.isdigit() for c in value)
        and any(c.isupper() for c in value)
        and any(c.islower() for c in value)
    )


def is_random(value: str) -> bool:
    """Return whether a value looks generated: is_mixed(), or long with letters and digits."""
    if is_mixed(value):
        return True
    digits, letters = sum(c.isdigit() for c in value), sum(c.isalpha() for c in value)
    return (
        digits >= _SEVERAL
        and letters >= _SEVERAL
        and len(value) >= _MIN_LONG_LENGTH
        and value.isalnum()
    )


def is_token_body(body: str) -> bool:
    """Return whether a text may follow a token's prefix: it is neither a word nor `xxxx`."""
    letters = [c for c in body if c.isalpha()]
    if is_token_placeholder(body):
        return False
    if any(map(str.isdigit, body)) and letters:
        return True
    switches = sum(a.isupper() != b.isupper() for a, b in pairwise(letters))
    return switches > _MAX_SWITCHES or (not letters and len(body) >= _MIN_KEY_LENGTH)


def is_secret_value(kind: ValueKind, value: str, *, is_quoted: bool) -> bool:
    """Return whether the value of a name is a credential; a quoted value is not code."""
    if is_placeholder(value) or _PATH.match(value) or _ROUTE.fullmatch(value):
        return False
    if kind is ValueKind.RANDOM:
        return is_generated(value)
    if kind is ValueKind.PASSWORD:
        return _is_quoted_password(value) if is_quoted else is_bare_password(value)
    return is_key(value, is_quoted=is_quoted)


def is_key(value: str, *, is_quoted: bool = False) -> bool:
    """Return whether a value is a key or token: long and random, or short, mixed and not a name."""
    is_name = _TYPE_NAME.fullmatch(value) or _ROUTE.fullmatch(value)
    if is_name or "://" in value or any(map(str.isspace, value)):
        return False
    if not is_quoted and _CODE.match(value) and not _is_scrambled(value):
        return False
    if _ALGORITHM.fullmatch(value) or len(value) < _MIN_NAMED_KEY_LENGTH:
        return is_strong(value) and not _ALGORITHM.fullmatch(value)
    if (
        len(value) >= _MIN_KEY_LENGTH
        and is_unlike_name(value)
        and (is_random(value) or _is_dense(value))
    ):
        return True
    if _BASE32.fullmatch(value) or (len(value) >= _MIN_LONG_LENGTH and _is_scrambled(value)):
        return True
    mixed = value.isalnum() and is_mixed(value) and not _NAME_WORDS.search(value)
    return (
        (mixed and (is_quoted or _NUMBERED.search(value) is not None))
        or (is_quoted and _is_dense(value))
        or is_strong(value)
    )


def is_generated(value: str) -> bool:
    """Return whether a value is certainly generated: long, with both cases and digits, not code."""
    if len(value) < _MIN_GENERATED_LENGTH or "://" in value or _CODE.match(value):
        return False
    if not is_mixed(value) or not is_unlike_name(value) or "." in value[:-1] or ":" in value:
        return False
    return "/" not in value or value.endswith("=") or "+" in value


def is_strong(value: str) -> bool:
    """Return whether a value mixes digits, letters and symbols, as a generated password does."""
    return (
        len(value) >= _MIN_PASSWORD_LENGTH
        and any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and any(c in _MARKS for c in value)
        and not _CODE.match(value)
    )


def _is_dense(value: str) -> bool:
    """Return whether a value has more digits among its letters than a numbered name."""
    if not any(map(str.isalpha, value)):
        return False
    runs = re.findall(r"\d+", value)
    return sum(map(len, runs)) >= _SEVERAL and len(runs) >= _SEVERAL - 1 and is_unlike_name(value)


def is_unlike_name(value: str) -> bool:
    """Return whether a value is unlike an identifier made of words, such as `access_token_v2`."""
    if _TYPE_NAME.fullmatch(value):
        return False
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", value) if part]
    return _is_scrambled(value) or any(not _NAMED.fullmatch(part) for part in parts)


def _is_scrambled(value: str) -> bool:
    """Return whether a value has capitals in several places among small letters, unlike a name."""
    return len(_CAPITALS.findall(value)) >= _SEVERAL


def is_bare_password(value: str) -> bool:
    """Return whether an unquoted value looks like a password.

    A password has only digits, only symbols, letters that change case as if at random, or letters
    mixed with digits or symbols.
    """
    if is_password_of_symbols(value):
        return True
    value = value.rstrip(".)")
    if len(value) < _MIN_PASSWORD_LENGTH or _is_expression(value) or "://" in value:
        return False
    if _ALGORITHM.fullmatch(value) or (_QUANTITY.fullmatch(value) and not value.isdigit()):
        return False
    more = any(c.isdigit() or c in _MARKS for c in value)
    return value.isdigit() or is_scrambled_word(value) or (more and any(map(str.isalpha, value)))


def _is_expression(value: str) -> bool:
    """Return whether an unquoted value is code; `Jane.Miller1` is a password, not code."""
    if _CODE_WITHIN.search(value):
        return True
    match = _CODE.match(value)
    return match is not None and not (_MEMBER.fullmatch(value) and is_mixed(value))


def is_password_of_symbols(value: str) -> bool:
    """Return whether a value has only symbols, and too many different ones for an operator."""
    return (
        len(value) >= _MIN_SYMBOLS and len(set(value)) >= _SHORT and all(c in _MARKS for c in value)
    )


def is_alphabetic_password(value: str) -> bool:
    """Return whether a value of letters, and perhaps hyphens, may be a password."""
    if len(value) < _MIN_PASSWORD_LENGTH or is_placeholder(value) or _NAME_WORDS.search(value):
        return False
    if not all(c.isalpha() or c == "-" for c in value) or value.endswith("-"):
        return False
    if not value.isascii() and not value[0].isascii():
        return False
    return not any(part in WORDS for part in value.lower().split("-"))


def has_inner_capitals(value: str) -> bool:
    """Return whether a word has several capitals inside, unlike words and product names."""
    if not value.isalpha() or len(value) < _MIN_NAMED_KEY_LENGTH or is_placeholder(value):
        return False
    return sum(a.islower() and b.isupper() for a, b in pairwise(value)) > 1


def is_scrambled_word(value: str) -> bool:
    """Return whether a word changes case as if at random."""
    if not value.isalpha() or len(value) < _MIN_NAMED_KEY_LENGTH or is_placeholder(value):
        return False
    switches = sum(a.isupper() != b.isupper() for a, b in pairwise(value))
    return switches > _MAX_SWITCHES and _CAPITALS.search(value) is not None


def is_type_name(value: str) -> bool:
    """Return whether a value looks like the name of a type: `String`, `Secret[str]`."""
    return _TITLE_WORD.fullmatch(value) is not None


def is_phrase(value: str) -> bool:
    """Return whether a value of several plain words is a passphrase, and not a sentence."""
    if not _PHRASE.fullmatch(value) or not value.isascii():
        return False
    return not any(map(is_sentence_word, re.split(r"[ -]", value.lower())))


def is_pin(value: str) -> bool:
    """Return whether a value is four to eight digits."""
    return value.isdigit() and _SHORT <= len(value) <= _MAX_PIN_LENGTH


def _is_quoted_password(value: str) -> bool:
    if any(map(str.isspace, value)):
        return is_phrase(value)
    if is_password_of_symbols(value):
        return True
    if len(value) < _SHORT or "://" in value or not any(map(str.isalnum, value)):
        return False
    if len(value) < _MIN_PASSWORD_LENGTH and not is_mixed(value) and not value.isalpha():
        return False
    if value.replace("_", "").replace("-", "").replace(".", "").isalpha():
        # A label, a translation, a member, or the name of another credential is not a password.
        return not _NAME_WORDS.search(value) and value.isascii() and not _MEMBER.fullmatch(value)
    return not _ALGORITHM.fullmatch(value)


def is_cell_secret(kind: ValueKind, value: str, *, is_described: bool = False) -> bool:
    """Return whether the value in a table cell next to or below a name is a credential.

    In a table of fields, other cells of the row may describe the name.
    """
    if is_placeholder(value) or "://" in value or _PATH.match(value) or _ROUTE.fullmatch(value):
        return False
    if any(map(str.isspace, value)):
        return kind is ValueKind.PASSWORD and is_phrase(value)
    if kind is ValueKind.PIN and is_pin(value):
        return True
    if kind is ValueKind.RANDOM:
        return is_generated(value)
    return _is_word_of_secret(kind, value, is_described=is_described)


def _is_word_of_secret(kind: ValueKind, value: str, *, is_described: bool) -> bool:
    if is_password_of_symbols(value):
        return not is_described
    if (
        len(value) < _MIN_PASSWORD_LENGTH
        or _is_technical(value)
        or (is_described and _CODE.match(value))
    ):
        return False
    if value.replace("-", "").replace("_", "").isalpha():
        return kind is not ValueKind.KEY and not is_described and is_alphabetic_password(value)
    if kind is ValueKind.KEY and not is_unlike_name(value):
        return not is_described and is_strong(value)
    return any(map(str.isalnum, value)) and not (is_described and value.isdigit())


def _is_technical(value: str) -> bool:
    """Return whether a value is an algorithm, a number with its unit, or a member of an object."""
    if _ALGORITHM.fullmatch(value) or (_MEMBER.fullmatch(value) and not _is_scrambled(value)):
        return True
    return _QUANTITY.fullmatch(value) is not None and not value.isdigit()
