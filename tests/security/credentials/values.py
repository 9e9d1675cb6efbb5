"""Random strings in the alphabets of credentials."""

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
    """Return so many characters of an alphabet; the last one is not punctuation."""
    plain = [c for c in alphabet if c.isalnum()] or list(alphabet)
    return "".join(rng.choices(alphabet, k=count - 1)) + rng.choice(plain)


def hexa(rng: Random, count: int) -> str:
    """Return hexadecimal digits with at least one letter and one figure."""
    return chars(rng, HEX, count - 2) + rng.choice("abcdef") + rng.choice(DIGITS)


def uuid(rng: Random) -> str:
    """Return a random UUID in lower case."""
    head = f"{hexa(rng, 8)}-{hexa(rng, 4)}-4{hexa(rng, 3)}-{rng.choice('89ab')}"
    return f"{head}{hexa(rng, 3)}-{hexa(rng, 12)}"


def base64_of(rng: Random, size: int) -> str:
    """Return padded base64 of so many random bytes."""
    return base64.b64encode(rng.randbytes(size)).decode()


def segment(value: object) -> str:
    """Return a segment of a JWT."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def wrapped(text: str, width: int = 64) -> str:
    """Wrap a text into lines of a width."""
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


def whole(text: str, name: str = "API_KEY", label: str = "API key") -> Credential:
    """Return a credential that is secret as a whole."""
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
    """Return a secret within other text; `user`, if it comes before, may be masked too."""
    start = len(before)
    at = before.find(user) if user else -1
    may = ((at, start),) if at >= 0 else ()
    return Credential(before + secret + after, ((start, start + len(secret)),), may, name, label)
