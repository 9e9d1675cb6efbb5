"""Numbers in a text that could be dialled, connected to or paid with, such as telephone numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

_INVISIBLE = re.compile(r"[*`\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_DATE = re.compile(
    r"\b(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})"
    r"(?:[t ]{1,2}\d{1,2}:\d{2})?\b"
)
_IPV4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])")
_HOST = r"(?:localhost|\]|[a-z0-9-]{1,63}\.[a-z0-9-]{1,63}\.?)"
_PORT = re.compile(
    rf"""(?:(?<!\w)(?:tcp|udp|ports?)(?:\s(?:number|no\.?|nr\.?|is|to))?\s?[:=\#-]?\s?
    |{_HOST}:)(?P<port>\d{{1,5}})(?![\w.:]\d|\d)
    |(?<![\w.])(?P<typed>\d{{1,5}})/(?:tcp|udp)\b
    |(?<![\w.:/]):(?P<bare>\d{{2,5}})(?![\w:]|\.\d)
    """,
    re.VERBOSE,
)
_GROUPS = re.compile(r"(?<![\w.,])\+?\(?\d(?:[ ()./\u2010-\u2015-]{0,3}\d){5,24}(?![\w])")
_SEPARATORS = re.compile(r"[ ()./\u2010-\u2015+-]")
_CALLED = re.compile(
    r"(?:\btel|phone|telefon|t[ée]l[ée]fono|call|dial|ring|fax|mobile|mobil|hotline|whatsapp|\bsms"
    r"|anruf|llam|appel)[^\n.;!?]{0,30}\Z"
)
_RUN = re.compile(r"\d+")

_PHONE = range(7, 16)
_CARD = range(13, 20)
_UNMARKED_DIGITS = 9
"""Minimum digits of a grouped number that is a telephone number without a word or sign saying
so."""
_LOOK_BACK = 48


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers in a text that a reader could dial, connect to or pay with.

    Attributes:
        hosts: IP addresses, in their shortest form.
        ports: port numbers, as digits.
        dialled: digits of telephone numbers and of payment cards.
    """

    hosts: frozenset[str] = frozenset()
    ports: frozenset[str] = frozenset()
    dialled: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> Numbers:
        """Return the numbers of a text."""
        folded = plain_text(text)
        if _RUN.search(folded) is None and "::" not in folded:
            return cls()
        hosts = frozenset(_hosts(folded))
        ports = (next(filter(None, port.groups())) for port in _PORT.finditer(folded))
        return cls(hosts, frozenset(ports), frozenset(_list_dialled_numbers(folded)))


@dataclass(frozen=True, slots=True)
class Digits:
    """The numbers in passages, in whatever form they are written.

    Attributes:
        runs: numbers, as digits only.
        joined: text of the passages without separators between the digits of a number.
        hosts: see Numbers.
    """

    runs: frozenset[str] = frozenset()
    joined: str = ""
    hosts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, text: str) -> Digits:
        """Return the numbers in a text."""
        folded = plain_text(text)
        joined = re.sub(r"(?<=\d)[ ()./\u2010-\u2015-]{1,3}(?=\d)", "", folded)
        return cls(frozenset(_RUN.findall(folded)), joined, frozenset(_hosts(folded)))

    @classmethod
    def merged(cls, parts: Sequence[Digits]) -> Digits:
        """Return one object with the numbers of all parts."""
        return cls(
            frozenset[str]().union(*(part.runs for part in parts)),
            "\n".join(part.joined for part in parts),
            frozenset[str]().union(*(part.hosts for part in parts)),
        )

    def hold(self, named: Numbers) -> bool:
        """Return whether the passages contain all of these numbers."""
        return (
            named.hosts <= self.hosts
            and named.ports <= self.runs
            and all(number.lstrip("0") in self.joined for number in named.dialled)
        )


def plain_text(text: str) -> str:
    """Return a text with compatibility forms and the digits of any script as plain characters."""
    compatible = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).casefold())
    if compatible.isascii():
        return compatible
    return "".join(
        str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in compatible
    )


def blank_hosts(folded: str) -> str:
    """Replace the IP addresses of a folded text with spaces."""
    for pattern in (_IPV4, _IPV6):
        folded = pattern.sub(
            lambda found: _blank(found) if _is_host(found[0]) else found[0], folded
        )
    return folded


def _is_host(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _hosts(plain_text: str) -> Iterator[str]:
    for pattern in (_IPV4, _IPV6):
        for found in pattern.finditer(plain_text):
            try:
                yield ip_address(found[0]).compressed
            except ValueError:
                # 999.1.1.1 is not an IP address, and 12:30:45 is a time.
                continue


def _list_dialled_numbers(plain_text: str) -> Iterator[str]:
    plain = _IPV4.sub(_blank, _DATE.sub(_blank, plain_text))
    for found in _GROUPS.finditer(plain):
        written = found[0]
        digits = _SEPARATORS.sub("", written)
        if _is_card(digits) or (
            len(digits) in _PHONE and _is_phone(plain, found.start(), written, digits)
        ):
            yield digits


def _is_phone(plain: str, start: int, written: str, digits: str) -> bool:
    if written.startswith(("+", "(", "00")):
        return True
    if _CALLED.search(plain, max(0, start - _LOOK_BACK), start):
        return True
    # Amounts of money are round, or written in groups of three digits.
    if digits.endswith("000") or re.fullmatch(r"\d{1,3}(?:[ .]\d{3})+", written):
        return False
    return len(digits) >= _UNMARKED_DIGITS


def _is_card(digits: str) -> bool:
    """Return whether digits may be a card number, judging by length and check digit (Luhn)."""
    if len(digits) not in _CARD or len(set(digits)) == 1:
        return False
    doubled = (int(d) * (1 + at % 2) for at, d in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0  # noqa: PLR2004


def _blank(found: re.Match[str]) -> str:
    return "\n" * len(found[0])
