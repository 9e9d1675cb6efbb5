"""Telling a credential from what documentation writes in its place."""

from __future__ import annotations

_FEW = 3
_LONG = 24
_WORDS = frozenset(
    """
    password passwd passphrase pass pwd secret token apikey api_key key string str text none null
    nil true false user username admin root guest test testing example postgres mysql changeme
    change_me required optional value default redacted masked hidden undefined foobar sample
    """.split()  # noqa: SIM905 - a list of words reads better as words
)
_PARTS = (
    "${", "{{", "}}", "%(", "<", ">", "...", "…", "xxx", "***", "your", "example",
    "placeholder", "insert", "replace", "environ", "getenv", "env.", "process.", "change-me",
)  # fmt: skip


def is_placeholder(value: str) -> bool:
    """Whether the value stands for one: a variable, `<your-password>`, `changeme`, `****`."""
    lowered = value.lower().strip("\"'`()[]{}.,;:")
    if not lowered or lowered in _WORDS or value.startswith(("$", "{", "%", "@", "#{")):
        return True
    return len(set(lowered)) < _FEW or any(part in value.lower() for part in _PARTS)


def is_mixed(value: str) -> bool:
    """Whether capitals, small letters and digits are all in it, as in base64."""
    return (
        any(c.isdigit() for c in value)
        and any(c.isupper() for c in value)
        and any(c.islower() for c in value)
    )


def is_random(value: str) -> bool:
    """Whether it looks generated: mixed, or a long run of digits and letters as in hexadecimal."""
    if is_mixed(value):
        return True
    digits, letters = sum(c.isdigit() for c in value), sum(c.isalpha() for c in value)
    return digits >= _FEW and letters >= _FEW and len(value) >= _LONG and value.isalnum()
