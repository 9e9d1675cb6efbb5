"""Sentences of an answer, and the citation markers, addresses and numbers in them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from itertools import pairwise
from typing import Literal

from rag_assets.ingest.chunking.boundaries import find_unicode_sentence_cuts
from rag_assets.search.words import MONTHS

# Numbers.
_INVISIBLE_MARKUP = re.compile(r"[*`\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
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
_MIN_UNMARKED_DIGITS = 9
"""Minimum digits of a grouped number that is a telephone number without a word or sign saying
so."""
_LOOKBACK_CHARACTERS = 48

# Addresses. All patterns run in linear time: repetitions are bounded, or can start in one place
# only.
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

# Citation markers.
_MAX_CITED_NUMBERS = 20
"""Maximum numbers in one marker. Brackets with more are not a citation but, for example, a range of
values."""
_GAP = r"[^\S\r\n]{0,2}"
_SPAN = rf"\^?\d{{1,4}}(?:{_GAP}[-‐‑‒–—]{_GAP}\^?\d{{1,4}})?"
_MARKER = re.compile(
    rf"(?P<lead>[ \t]?)[\[【［]{_GAP}(?P<spans>{_SPAN}(?:{_GAP}[,;，；]{_GAP}{_SPAN}){{0,19}})"
    rf"{_GAP}(?:†[^\[\]【】［］\r\n]{{0,80}})?[\]】］]"
)
_NUMBER = re.compile(r"\d+")
_SEPARATOR = re.compile(r"[,;，；]")

# Sentences, fences and tables.
_ITEM = r"(?:[\s>]|[-*+•][ \t]|\d{1,9}[.)][ \t])*+"
# All quantifiers are possessive, so that no line is scanned twice.
_FENCE = re.compile(rf"{_ITEM}(`{{3,}}+(?=[^`]*+$)|~{{3,}}+)")
_FENCE_END = re.compile(r"[\s>]*+(`{3,}+|~{3,}+)\s*+$")
_RULE = re.compile(r"[\s>]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|)++(?:[ \t]*+:?-++:?)?\s*+$")
_LEAD = re.compile(r"[\W_]*(?:(?:\d{1,9}|[A-Za-z]|[ivxIVX]{2,5})[.)](?![^\W_])[\W_]*)?")
_LIST_SIGN = re.compile(r"\s*(?:[-*+•]|\d{1,9}[.)])[ \t]+")
_ABBREVIATION = re.compile(
    r"(?<!\w)(?:[^\W\d_]|Dr|Mrs?|Ms|Prof|St|[SJ]r|Lt|Col|Gen|Capt|Sgt|Rev|Gov|Mt|Inc|Ltd|Corp|Co"
    r"|vs|etc|cf|al|viz|resp|incl|excl|[Ff]igs?|[Ee]qs?|[Aa]pprox|[Cc]a|bzw|usw)\.\s*$"
)
_BEFORE_NUMBER = re.compile(
    r"(?<!\w)(?:N[or]s?|nos?|pp|[Vv]ol|[Cc]h|[Ss]ec|[Aa]rt|[Aa]bs"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.\s*$"
)
_DAY = re.compile(r"(?<![\w.,])\d{1,2}\.\s+$")
_NEXT_WORD = re.compile(r"[^\W\d_]+")
_MAX_ABBREVIATION_CHARACTERS = 16
_MAX_SENTENCE_CHARACTERS = 2_000

Role = Literal["prose", "fence", "head", "row"]


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
    def parse(cls, text: str) -> Numbers:
        """Find the hosts, ports, telephone numbers and card numbers in a text."""
        folded = normalize_characters(text)
        if _RUN.search(folded) is None and "::" not in folded:
            return cls()
        hosts = frozenset(_find_hosts(folded))
        ports = (next(filter(None, port.groups())) for port in _PORT.finditer(folded))
        return cls(hosts, frozenset(ports), frozenset(_iter_phone_and_card_numbers(folded)))


@dataclass(frozen=True, slots=True)
class Digits:
    """All numbers in passages; the Numbers of a claim are compared with them.

    Attributes:
        runs: numbers, as digits only.
        joined: text of the passages without separators between the digits of a number.
        hosts: see Numbers.
    """

    runs: frozenset[str] = frozenset()
    joined: str = ""
    hosts: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Digits:
        """Collect all numbers in a text."""
        folded = normalize_characters(text)
        joined = re.sub(r"(?<=\d)[ ()./\u2010-\u2015-]{1,3}(?=\d)", "", folded)
        return cls(frozenset(_RUN.findall(folded)), joined, frozenset(_find_hosts(folded)))

    @classmethod
    def merge(cls, parts: Sequence[Digits]) -> Digits:
        """Combine the numbers of several passages."""
        return cls(
            frozenset[str]().union(*(part.runs for part in parts)),
            "\n".join(part.joined for part in parts),
            frozenset[str]().union(*(part.hosts for part in parts)),
        )

    def contain(self, named: Numbers) -> bool:
        """Return whether the passages contain all of these numbers."""
        return (
            named.hosts <= self.hosts
            and named.ports <= self.runs
            and all(number.lstrip("0") in self.joined for number in named.dialled)
        )


def normalize_characters(text: str) -> str:
    """Replace compatibility forms by plain characters, and digits of any script by 0 to 9."""
    compatible = _INVISIBLE_MARKUP.sub("", unicodedata.normalize("NFKC", text).casefold())
    if compatible.isascii():
        return compatible
    return "".join(
        str(unicodedata.decimal(c)) if not c.isascii() and c.isdecimal() else c for c in compatible
    )


def blank_hosts(folded: str) -> str:
    """Replace the IP addresses of a folded text with spaces."""
    for pattern in (_IPV4, _IPV6):
        folded = pattern.sub(
            lambda match: _replace_with_line_feeds(match) if _is_host(match[0]) else match[0],
            folded,
        )
    return folded


def _is_host(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _find_hosts(folded: str) -> Iterator[str]:
    for pattern in (_IPV4, _IPV6):
        for match in pattern.finditer(folded):
            try:
                yield ip_address(match[0]).compressed
            except ValueError:
                # 999.1.1.1 is not an IP address, and 12:30:45 is a time.
                continue


def _iter_phone_and_card_numbers(folded: str) -> Iterator[str]:
    plain = _IPV4.sub(_replace_with_line_feeds, _DATE.sub(_replace_with_line_feeds, folded))
    for match in _GROUPS.finditer(plain):
        written = match[0]
        digits = _SEPARATORS.sub("", written)
        if _is_card(digits) or (
            len(digits) in _PHONE and _is_phone(plain, match.start(), written, digits)
        ):
            yield digits


def _is_phone(plain: str, start: int, written: str, digits: str) -> bool:
    if written.startswith(("+", "(", "00")):
        return True
    if _CALLED.search(plain, max(0, start - _LOOKBACK_CHARACTERS), start):
        return True
    # Amounts of money are round, or written in groups of three digits.
    if digits.endswith("000") or re.fullmatch(r"\d{1,3}(?:[ .]\d{3})+", written):
        return False
    return len(digits) >= _MIN_UNMARKED_DIGITS


def _is_card(digits: str) -> bool:
    """Return whether digits may be a card number, judging by length and check digit (Luhn)."""
    if len(digits) not in _CARD or len(set(digits)) == 1:
        return False
    doubled = (int(d) * (1 + at % 2) for at, d in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0  # noqa: PLR2004


def _replace_with_line_feeds(match: re.Match[str]) -> str:
    return "\n" * len(match[0])


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
    def parse(cls, text: str) -> Addresses:
        """Return the addresses of a text, in lower case."""
        folded = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).casefold())
        # Restore addresses that are written so that they do not become links, such as `hxxp` or
        # `[at]`.
        folded = _SPELLED_DOT.sub(".", _SPELLED_AT.sub("@", folded)).replace("hxxp", "http")
        links = (
            next(group for group in link.groups() if group is not None)
            for link in _LINK.finditer(folded)
        )
        names = (name[0].rstrip(_TRAILING) for name in _NAME.finditer(folded))
        bare = (_SCHEME.sub("", link).rstrip(_TRAILING) for link in links)
        return cls(frozenset(bare), frozenset(names), Numbers.parse(text))

    @property
    def known(self) -> frozenset[str]:
        """Return links, names, and the hosts of both: the addresses that a citing text may use."""
        hosts = {address.partition("/")[0] for address in self.links | self.names}
        return self.links | self.names | hosts


def blank_addresses(text: str) -> str:
    """Replace addresses and file names in a text with spaces, keeping its length."""
    return _FILE_OR_HOST.sub(_replace_with_spaces, _WRITTEN.sub(_blank_link, text))


def _blank_link(word: re.Match[str]) -> str:
    return (
        _replace_with_spaces(word)
        if "//" in word[0] or "@" in word[0] or "\\" in word[0]
        else word[0]
    )


def _replace_with_spaces(match: re.Match[str]) -> str:
    return " " * len(match[0])


def list_cited_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers that a text cites, in order, without duplicates."""
    numbers = (
        number for marker in _MARKER.finditer(text) for number in _iter_marker_numbers(marker)
    )
    return tuple(dict.fromkeys(numbers))


def blank_markers(text: str) -> str:
    """Replace markers in a text with spaces, keeping its length."""
    return _MARKER.sub(_blank_marker, text)


def keep_known_markers(text: str, known: Container[int]) -> str:
    """Return the text with only known numbers in its markers, which become `[1]` or `[1, 3]`."""
    return _MARKER.sub(lambda marker: _rewrite_marker(marker, known), text)


def _rewrite_marker(marker: re.Match[str], known: Container[int]) -> str:
    numbers = tuple(_iter_marker_numbers(marker))
    if not numbers:
        return marker[0]
    known_numbers = dict.fromkeys(str(number) for number in numbers if number in known)
    return f"{marker['lead']}[{', '.join(known_numbers)}]" if known_numbers else ""


def _blank_marker(marker: re.Match[str]) -> str:
    return " " * len(marker[0]) if tuple(_iter_marker_numbers(marker)) else marker[0]


def _iter_marker_numbers(marker: re.Match[str]) -> Iterator[int]:
    """Yield the numbers of a marker, with ranges expanded; none if the marker is not a citation."""
    ranges = [_parse_range(span) for span in _SEPARATOR.split(marker["spans"])]
    if all(ranges) and sum(map(len, ranges)) <= _MAX_CITED_NUMBERS:
        for numbers in ranges:
            yield from numbers


def _parse_range(span: str) -> range:
    ends = [int(number) for number in _NUMBER.findall(span)]
    return range(ends[0], ends[-1] + 1)


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A part of an answer that is kept or removed as a whole.

    Attributes:
        start, end: character offsets in the answer, half open.
        role: a sentence of prose, a whole fence, the head of a table with the rule below it, or
            a table row.
    """

    start: int
    end: int
    role: Role


def split_answer(answer: str) -> Iterator[AnswerPart]:
    """Yield an answer's sentences, fences, table heads and rows; together they cover the answer.

    A marker belongs to the sentence that contains it or directly precedes it. At the start of a
    line it belongs to the following sentence. On a separate line it belongs to the line before.
    """
    # Markers become spaces, since sentence ends must not depend on markers.
    prose = blank_markers(answer)
    for block in _attach_markers(answer, prose):
        if block.role != "prose":
            yield block
            continue
        ends = _iter_sentence_ends(answer, prose, block)
        for start, end in pairwise([block.start, *ends, block.end]):
            yield AnswerPart(start, end, "prose")


def find_list_marker(text: str) -> str:
    """Return the bullet or number at the start of a text, with its blanks; "" if there is none."""
    sign = _LIST_SIGN.match(text)
    return sign[0] if sign else ""


def _iter_sentence_ends(answer: str, prose: str, line: AnswerPart) -> Iterator[int]:
    lead = _LEAD.match(prose, line.start, line.end)
    sentence_start = lead.end() if lead else line.start
    start = end = line.start
    has_address = False
    for cut in _find_cuts(prose, line.start, line.end):
        if cut > end:
            # Find the word around the cut. Each word is checked once, however many cuts it
            # contains.
            start, end = _find_word_around(answer, cut, (end, line.end))
            has_address = start < cut < end and _has_address(answer[start:end])
        in_address = has_address and cut < end and _may_continue(answer, cut)
        # An exclamation mark may be the start of an image.
        in_image = answer.startswith("![", cut - 1) or answer.startswith("![", cut - 2)
        if cut > sentence_start and not (
            in_address or in_image or _is_abbreviated(answer, line.start, cut)
        ):
            yield cut


def _find_word_around(answer: str, at: int, bounds: tuple[int, int]) -> tuple[int, int]:
    """Return the start and end of the non-blank characters around a position."""
    start = end = at
    while start > bounds[0] and not answer[start - 1].isspace():
        start -= 1
    while end < bounds[1] and not answer[end].isspace():
        end += 1
    return start, end


def _has_address(word: str) -> bool:
    addresses = Addresses.parse(word)
    return bool(addresses.links or addresses.names)


def _may_continue(answer: str, cut: int) -> bool:
    """Return whether an address may continue after a cut, for example after the ? of a query.

    A Chinese or Japanese full stop ends the address if words of that language follow.
    """
    return answer[cut - 1].isascii() or answer[cut].isascii()


def _find_cuts(prose: str, start: int, end: int) -> Iterator[int]:
    """Yield the sentence ends that Unicode's rules find, in windows of limited length.

    Without windows, the rules would read the whole remaining text at each full stop.
    """
    while start < end:
        stop = min(start + _MAX_SENTENCE_CHARACTERS, end)
        cuts = [cut for cut, _ in find_unicode_sentence_cuts(prose, start, stop)]
        if stop < end:
            cuts = cuts or [stop]
            start = cuts[-1]
        else:
            start = end
        yield from cuts


def _is_abbreviated(answer: str, start: int, cut: int) -> bool:
    """Return whether the full stop before a cut marks only an abbreviation."""
    before = answer[max(start, cut - _MAX_ABBREVIATION_CHARACTERS) : cut]
    if answer[cut].isdigit() and _BEFORE_NUMBER.search(before):
        return True
    # In German, a full stop makes an ordinal, as in 15. März.
    word = _NEXT_WORD.match(answer, cut)
    if word and word[0].casefold() in MONTHS and _DAY.search(before):
        return True
    return _ABBREVIATION.search(before) is not None


def _attach_markers(answer: str, prose: str) -> Iterator[AnswerPart]:
    """Yield the blocks of an answer; lines with only markers are added to the block above them."""
    previous: AnswerPart | None = None
    open_ended = False
    for block in _iter_blocks(prose):
        blank = prose[block.start : block.end].isspace()
        marks = blank and not answer[block.start : block.end].isspace()
        if previous and open_ended and marks:
            previous = replace(previous, end=block.end)
            continue
        if previous:
            yield previous
        previous, open_ended = block, not blank and block.role != "head"
    if previous:
        yield previous


def _iter_blocks(prose: str) -> Iterator[AnswerPart]:
    """Yield the blocks of an answer: a fence, a table head, or a single line."""
    lines = prose.splitlines(keepends=True)
    at = number = 0
    tabular = False
    while number < len(lines):
        role, count = _classify_block(lines, number, tabular=tabular)
        end = at + sum(map(len, lines[number : number + count]))
        yield AnswerPart(at, end, role)
        at, number, tabular = end, number + count, role in {"head", "row"}


def _classify_block(lines: list[str], number: int, *, tabular: bool) -> tuple[Role, int]:
    """Return the role of the block that starts at a line, and its number of lines."""
    line = lines[number]
    if fence := _FENCE.match(line):
        return "fence", _count_fence_lines(lines, number, fence[1])
    if "|" in line and number + 1 < len(lines) and _RULE.match(lines[number + 1]):
        return "head", 2
    if line.lstrip().startswith("|") or (tabular and "|" in line):
        return "row", 1
    return "prose", 1


def _count_fence_lines(lines: list[str], number: int, sign: str) -> int:
    for last in range(number + 1, len(lines)):
        end = _FENCE_END.match(lines[last])
        if end and end[1].startswith(sign):
            return last - number + 1
    return len(lines) - number
