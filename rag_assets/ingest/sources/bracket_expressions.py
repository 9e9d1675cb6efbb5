"""Bracket expressions of globs, such as [a-z], [!0-9] or [[:alpha:]], as git interprets them."""

from __future__ import annotations

import string

_CLASSES = {
    b"alnum": string.ascii_letters + string.digits,
    b"alpha": string.ascii_letters,
    b"blank": " \t",
    b"cntrl": "".join(map(chr, [*range(32), 127])),
    b"digit": string.digits,
    b"graph": "".join(map(chr, range(33, 127))),
    b"lower": string.ascii_lowercase,
    b"print": "".join(map(chr, range(32, 127))),
    b"punct": string.punctuation,
    b"space": " \t\n\r",
    b"upper": string.ascii_uppercase,
    b"xdigit": string.hexdigits,
}


def read_bracket(pattern: bytes, start: int) -> tuple[bytes, int]:
    """Translate the bracket expression that starts at pattern[start].

    Returns:
        A regular expression for one byte, and the position after the closing bracket.

    Raises:
        ValueError: the expression is not closed or names an unknown class.
    """
    at = start + 1
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    first = at
    members: set[int] = set()
    previous = -1  # a range needs a plain character before its dash
    while at == first or _char(pattern, at) != ord("]"):
        char = _char(pattern, at)
        named = _named_class(pattern, at)
        if named is not None:
            members.update(_CLASSES[named].encode())
            at += len(named) + 4
            previous = -1
        elif char == ord("-") and previous >= 0 and _char(pattern, at + 1) != ord("]"):
            end, at = _read_escaped_character(pattern, at + 1)
            members.update(range(previous, end + 1))
            previous = -1
        else:
            previous, at = _read_escaped_character(pattern, at)
            members.add(previous)
    if negated:
        members = set(range(256)) - members
    members.discard(ord("/"))  # a bracket expression never matches the path separator
    body = b"".join(b"\\x%02x" % member for member in sorted(members))
    return (b"[" + body + b"]" if body else b"(?!)"), at + 1


def _char(pattern: bytes, at: int) -> int:
    if at >= len(pattern):
        raise ValueError("a bracket expression is not closed")
    return pattern[at]


def _read_escaped_character(pattern: bytes, at: int) -> tuple[int, int]:
    """Return the character at a position, which may be escaped, and the position after it."""
    if _char(pattern, at) == ord("\\"):
        at += 1
    return _char(pattern, at), at + 1


def _named_class(pattern: bytes, at: int) -> bytes | None:
    """Return the class name of [:name:] at a position; None if there is no such text.

    Raises:
        ValueError: no class has that name.
    """
    if pattern[at : at + 2] != b"[:":
        return None
    end = pattern.find(b"]", at + 2)
    if end < 0:
        raise ValueError("a bracket expression is not closed")
    if end == at + 2 or pattern[end - 1 : end] != b":":
        return None
    name = pattern[at + 2 : end - 1]
    if name not in _CLASSES:
        raise ValueError("a bracket expression has an unknown character class")
    return name
