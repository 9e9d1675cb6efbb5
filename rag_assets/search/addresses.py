"""Addresses in a text that a reader, or a program displaying it, could follow."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from rag_assets.search.numbers import Numbers

# All patterns run in linear time: repetitions are bounded, or can start in one place only.
_TARGET = r"[^\s<>()\[\]\"'`]"
_LINK = re.compile(
    rf"""(?:[a-z][a-z0-9+.-]{{0,30}}:)?(?<![/\\])[/\\]{{2,}}+(?P<url>\w{_TARGET}*)
    |\b(?:mailto|tel|sms|javascript|vbscript|data|file|blob|about):(?P<uri>{_TARGET}+)
    |\b(?P<mail>[\w.+-]{{1,64}}@[\w-]{{1,63}}\.[\w.-]+)
    |(?:\]\(|(?<![\d\s,])\]:)\s{{0,9}}<?(?P<target>{_TARGET}*)
    |<(?P<tag>(?:a|img|iframe|script|form|link|meta|object|embed|svg|video|audio)[\s/][^<>]*)
    """,
    re.VERBOSE,
)
_NAME = re.compile(
    rf"(?<![\w@.-])(?:[\w-]{{1,63}}\.){{1,99}}[^\W\d_]{{2,}}(?![\w-])(?:/{_TARGET}*)?"
)
_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_SPELLED_DOT = re.compile(r"\s?[\[({]\s?(?:\.|dot|punkt|point)\s?[\])}]\s?")
_SPELLED_AT = re.compile(r"\s?[\[({]\s?(?:@|at)\s?[\])}]\s?")
_WRITTEN = re.compile(r"\S+")
_FILE_OR_HOST = re.compile(
    r"(?<![\w.])(?:[\w-]{1,63}\.){1,9}[a-z]{2,24}(?:/\S{0,500})?", re.IGNORECASE
)
_SCHEME = re.compile(r"\A(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}|\Amailto:")
_TRAILING = ".,;:!?*_/"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses in a text.

    Attributes:
        links: URLs, mail addresses, targets of links and images, and HTML tags; stored without
            their scheme.
        names: host names and file names, which cannot be told apart: `example.org/login`,
            `main.py`.
        numbers: IP addresses, ports, telephone numbers and payment card numbers.
    """

    links: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    numbers: Numbers = field(default_factory=Numbers)

    @classmethod
    def of(cls, text: str) -> Addresses:
        """Return the addresses of a text, in lower case."""
        seen = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).casefold())
        # Restore addresses that are written so that they do not become links, such as `hxxp` or
        # `[at]`.
        seen = _SPELLED_DOT.sub(".", _SPELLED_AT.sub("@", seen)).replace("hxxp", "http")
        links = (
            next(found for found in link.groups() if found is not None)
            for link in _LINK.finditer(seen)
        )
        names = (name[0].rstrip(_TRAILING) for name in _NAME.finditer(seen))
        bare = (_SCHEME.sub("", link).rstrip(_TRAILING) for link in links)
        return cls(frozenset(bare), frozenset(names), Numbers.of(text))

    @property
    def known(self) -> frozenset[str]:
        """Return links, names, and the hosts of both: the addresses that a citing text may use."""
        hosts = {address.partition("/")[0] for address in self.links | self.names}
        return self.links | self.names | hosts


def blank_addresses(text: str) -> str:
    """Replace addresses and file names in a text with spaces, keeping its length."""
    return _FILE_OR_HOST.sub(_blank, _WRITTEN.sub(_blank_link, text))


def _blank_link(word: re.Match[str]) -> str:
    return _blank(word) if "//" in word[0] or "@" in word[0] or "\\" in word[0] else word[0]


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])
