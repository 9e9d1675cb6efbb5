"""Random characters of the alphabets that credentials are made of."""

from __future__ import annotations

import base64
import json
import string
from random import Random

from tests.security.credentials.model import Credential

LETTERS = string.ascii_letters
UPPER = string.ascii_uppercase
LOWER = string.ascii_lowercase
DIGITS = string.digits
ALNUM = LETTERS + DIGITS
HEX = DIGITS + "abcdef"
URLSAFE = ALNUM + "_-"


def chars(rng: Random, alphabet: str, count: int) -> str:
    """So many of the alphabet, the last no punctuation."""
    plain = [c for c in alphabet if c.isalnum()] or list(alphabet)
    return "".join(rng.choices(alphabet, k=count - 1)) + rng.choice(plain)


def hexa(rng: Random, count: int) -> str:
    """Hexadecimal digits, both letters and figures among them."""
    return chars(rng, HEX, count - 2) + rng.choice("abcdef") + rng.choice(DIGITS)


def uuid(rng: Random) -> str:
    """A random UUID in small letters."""
    head = f"{hexa(rng, 8)}-{hexa(rng, 4)}-4{hexa(rng, 3)}-{rng.choice('89ab')}"
    return f"{head}{hexa(rng, 3)}-{hexa(rng, 12)}"


def base64_of(rng: Random, size: int) -> str:
    """Standard base64 of so many random bytes, padded."""
    return base64.b64encode(rng.randbytes(size)).decode()


def segment(value: object) -> str:
    """A part of a JWT."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def wrapped(text: str, width: int = 64) -> str:
    """In lines of a width."""
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


def whole(text: str, name: str = "API_KEY", label: str = "API key") -> Credential:
    """A credential of which all is secret."""
    return Credential(text, ((0, len(text)),), name=name, label=label)


def between(
    before: str,
    secret: str,
    after: str = "",
    *,
    name: str = "API_KEY",
    label: str = "API key",
    user: str = "",
) -> Credential:
    """A secret inside of what is none; `user`, where it stands before, may be masked as well."""
    start = len(before)
    at = before.find(user) if user else -1
    may = ((at, start),) if at >= 0 else ()
    return Credential(before + secret + after, ((start, start + len(secret)),), may, name, label)
