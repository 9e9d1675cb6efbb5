"""Lines of documentation, configuration, shells, devices and chats, with and without credentials.

`development.txt` may be read while rules are written. `held_out.txt` was written before the rules,
and only its figures are shown. A section begins with `# ` and stands for one document. `⟦…⟧` marks
a credential, `⟨…⟩` a value that may be masked or not (a weak password of a tutorial), `⏎` a line
break, and a slot such as `{an40}` random characters.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Literal

from tests.security.credentials.model import Sample, Span
from tests.security.credentials.values import (
    ALNUM,
    DIGITS,
    LETTERS,
    LOWER,
    UPPER,
    URLSAFE,
    chars,
    hexa,
    uuid,
)

Part = Literal["development", "held_out"]

_SEEDS = 3
_BASE32 = UPPER + "234567"
_ALPHABETS: Mapping[str, str] = MappingProxyType(
    {
        "an": ALNUM,
        "lo": LOWER + "234567",
        "lodg": LOWER + DIGITS,
        "dg": DIGITS,
        "HEX": DIGITS + "ABCDEF",
        "UP": UPPER + DIGITS,
        "B32": _BASE32,
        "url": URLSAFE,
        "b64:": ALNUM + "+/",
        "bc": ALNUM + "./",
        "alphaplus": ALNUM + "+/",
        "pwd": ALNUM + "!@#$%^&*(-_=+)",
    }
)
_NAMED = "|".join(sorted(_ALPHABETS, key=len, reverse=True))
_SLOT = re.compile(rf"\{{(?:(?P<name>{_NAMED}|hex|pw)(?P<count>\d+)|(?P<form>uuid|basic|fp))\}}")
_MARKS = re.compile("[⟦⟧⟨⟩]")
_WORDS = ("Sommer", "Hafen", "winter", "Falcon", "Lager", "Tiger", "maple", "Granit", "Orbit")


def line_samples(part: Part, *, seed: int = 35) -> Iterator[Sample]:
    """Yield each line as a sample; lines with credentials several times, with other values."""
    for title, lines in _sections(part):
        for number, line in enumerate(lines):
            for round_ in range(_SEEDS if "⟦" in line else 1):
                rng = Random(f"{seed}/{part}/{title}/{number}/{round_}")
                yield _sample(line, f"{title}/{number}", part, rng)


def clean_documents(part: Part, *, seed: int = 35) -> Iterator[Sample]:
    """Yield each section without a credential as one document."""
    for title, lines in _sections(part):
        if not any("⟦" in line for line in lines):
            text = "\n".join([f"# {title}", "", *lines, ""])
            yield _sample(text, title, part, Random(f"{seed}/{part}/{title}"))


def _sections(part: Part) -> Iterator[tuple[str, list[str]]]:
    text = Path(__file__).with_name(f"{part}.txt").read_text(encoding="utf-8")
    for section in text.removeprefix("# ").split("\n\n# "):
        title, _, lines = section.partition("\n")
        yield title, lines.splitlines()


def _sample(line: str, context: str, part: Part, rng: Random) -> Sample:
    filled = _SLOT.sub(lambda slot: _value(slot, rng), line.replace("⏎", "\n"))
    parts: list[str] = []
    spans: dict[str, list[Span]] = {"⟧": [], "⟩": []}
    length = start = at = 0
    for mark in _MARKS.finditer(filled):
        parts.append(filled[at : mark.start()])
        length += len(parts[-1])
        at = mark.end()
        if mark[0] in spans:
            spans[mark[0]].append((start, length))
        else:
            start = length
    text = "".join([*parts, filled[at:]])
    kind = "line" if spans["⟧"] else "clean"
    half: Literal["tuning", "held_out"] = "tuning" if part == "development" else "held_out"
    return Sample(text, tuple(spans["⟧"]), kind, context, half, may=tuple(spans["⟩"]))


def _value(slot: re.Match[str], rng: Random) -> str:
    if slot["form"]:
        return _FORMS[slot["form"]](rng)
    count = int(slot["count"])
    if slot["name"] == "hex":
        return hexa(rng, count)
    if slot["name"] == "pw":
        return _password(rng, count)
    return _mixed(rng, _ALPHABETS[slot["name"]], count)


def _mixed(rng: Random, alphabet: str, count: int) -> str:
    """Return random characters, with a digit and a letter if the alphabet has both."""
    text = chars(rng, alphabet, count)
    if count >= len("a1") and not set(text) & set(DIGITS) and set(alphabet) & set("234"):
        return text[:-1] + rng.choice("234567")
    return text


def _password(rng: Random, count: int) -> str:
    """Return a chosen or generated password with a digit."""
    if rng.random() < 1 / 3:
        return (
            f"{rng.choice(_WORDS)}{rng.choice('-_!.')}{rng.randint(10, 2030)}{rng.choice('!#?x')}"
        )
    symbols = rng.choice(["!", "#+", "?=", "", "%-"])
    return rng.choice(LETTERS) + _mixed(rng, ALNUM + symbols, count - 2) + rng.choice(ALNUM)


def _basic(rng: Random) -> str:
    return base64.b64encode(f"jane:{_mixed(rng, ALNUM, 14)}".encode()).decode()


def _fingerprint(rng: Random) -> str:
    return ":".join(hexa(rng, 32)[i : i + 2] for i in range(0, 32, 2))


_FORMS: Mapping[str, Callable[[Random], str]] = MappingProxyType(
    {"uuid": uuid, "basic": _basic, "fp": _fingerprint}
)
