"""Finds credentials in a text and in several views of it, by our own rules and kingfisher's."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rag_assets.privacy.secrets.placeholders import is_placeholder
from rag_assets.privacy.secrets.rules import RuleSet
from rag_assets.privacy.secrets.spans import SecretSpan, mask, merge_spans
from rag_assets.privacy.secrets.text_views import (
    Seam,
    View,
    blank_markup,
    decode_parts,
    find_candidates,
    fold_lookalikes,
    join_lines,
)
from rag_assets.privacy.secrets.tokens import read_token_rules

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner


_CONTINUATION = re.compile(rb"[\x80-\xbf]")  # continuation bytes of UTF-8
# Greedy across lines and quotation marks; commands.py has a rule for each of its flags.
_REPLACED_RULES = ("curl-auth-user",)
_WINDOW_CHARACTERS = 8_192
_OVERLAP_CHARACTERS = 2_048
_ADDRESS = re.compile(r"://[^/\s]*@")


class Kingfisher:
    """Kingfisher's scanner, whose rules are loaded at their first use for the whole process."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _scanner: ClassVar[Scanner | None] = None

    def __init__(self, cache_dir: Path | None, timeout: float) -> None:
        self._cache_dir = cache_dir
        self._timeout = timeout

    def load(self) -> Scanner:
        """Return kingfisher's rules; load them if the process has not loaded them yet."""
        with Kingfisher._lock:
            if Kingfisher._scanner is None:
                from kingfisher_sdk import Rules, Scanner

                folder = self._cache_dir
                Kingfisher._scanner = Scanner(Rules(cache=folder is not None, cache_dir=folder))
            return Kingfisher._scanner

    def scan(self, text: str) -> Iterator[SecretSpan]:
        """Find credentials in a text; raise a TimeoutError if a scan takes too long."""
        scanner = self.load()
        for start, end in _split_into_windows(len(text)):
            for span in self._scan_window(scanner, text[start:end]):
                yield SecretSpan(start + span.start, start + span.end, span.rule)

    def _scan_window(self, scanner: Scanner, text: str) -> Iterator[SecretSpan]:
        raw = text.encode("utf-8", "surrogatepass")
        spans = [
            (at["start_offset"], at["end_offset"], finding.rule_id)
            for finding in scanner.scan(raw, timeout=self._timeout)
            if finding.visible
            and not finding.rule_id.endswith(_REPLACED_RULES)
            and (at := finding.location)
        ]
        if not spans:
            return
        characters = _convert_offsets(raw, {n for low, high, _ in spans for n in (low, high)})
        for low, high, rule in spans:
            start, end = characters[low], characters[high]
            value = text[start:end]
            # In an address, only the password is a credential; the project's own rule finds it.
            if _ADDRESS.search(value) or is_placeholder(value):
                continue
            if not is_placeholder(value.rpartition(":")[2]):
                yield SecretSpan(start, end, rule)


def _split_into_windows(length: int) -> Iterator[tuple[int, int]]:
    """Yield overlapping windows, since some rules take time quadratic in a text's length."""
    start = 0
    while start + _WINDOW_CHARACTERS < length:
        yield start, start + _WINDOW_CHARACTERS
        start += _WINDOW_CHARACTERS - _OVERLAP_CHARACTERS
    yield start, length


def _convert_offsets(raw: bytes, offsets: set[int]) -> dict[int, int]:
    """Convert byte offsets to character offsets, also those inside a character."""
    characters: dict[int, int] = {}
    at = count = 0
    for offset in sorted(offsets):
        count += offset - at - len(_CONTINUATION.findall(raw, at, offset))
        characters[offset] = count
        at = offset
    return characters


__all__ = ["RULES_VERSION", "SecretScanner", "SecretSpan", "rules_version"]

RULES_VERSION = 7
"""Increased by hand when a scan's findings change for any text: more, fewer or other spans.

An increase causes a new scan of all stored data of all tenants; see pipeline/rescan.py. An edit
that changes no finding, such as a renaming or an edited comment, does not increase it.
tests/unit/privacy/secrets/test_rules_version.py fails if findings change but the version does not.
"""

_MAX_ROUNDS = 24
_LINES_AROUND = 8
_MAX_LINE_CHARACTERS = 2_000


@cache
def rules_version() -> str:
    """Return the version of all rules: the project's own and kingfisher's."""
    from importlib.metadata import version

    return f"{RULES_VERSION}+kingfisher-{version('kingfisher-secret-scanner')}"


@cache
def load_own_rules() -> RuleSet:
    """Return all of the project's own rules; their modules are imported when they are first used."""
    from rag_assets.privacy.secrets import assignments, commands, logins, private_keys

    return RuleSet(
        [
            *private_keys.RULES,
            *read_token_rules(),
            *logins.RULES,
            *commands.RULES,
            *commands.STATEMENT_RULES,
            *assignments.RULES,
        ]
    )


@cache
def load_token_rules() -> RuleSet:
    """Return the rules for tokens that can be recognized by their form alone."""
    return RuleSet(read_token_rules())


class SecretScanner:
    """Finds credentials.

    All scanners of a process share their rules, which take 0.3 s to load from the private folder
    `cache_dir`; without it, they are compiled for up to 3 s. Credentials are not verified with their
    services: no data leaves the process.
    """

    def __init__(self, cache_dir: Path | None = None, *, timeout: float = 60.0) -> None:
        self._kingfisher = Kingfisher(cache_dir, timeout)

    def load(self) -> None:
        """Load the rules now instead of on the first scan."""
        self._kingfisher.load()
        load_own_rules().load()
        load_token_rules().load()

    def scan(self, text: str) -> list[SecretSpan]:
        """Find the credentials in a text, sorted, with overlapping spans joined.

        A greedy rule can include a credential that precedes its own. So findings are masked, and the
        text around them is scanned again until there are no new findings. A TimeoutError means that a
        scan took too long; there is no partial answer.
        """
        new_spans = merge_spans(self._scan_views(text))
        spans = list(new_spans)
        rest = text
        for _ in range(_MAX_ROUNDS):
            if not new_spans:
                break
            rest = mask(rest, new_spans)
            new_spans = merge_spans(
                chain.from_iterable(
                    self._scan_part(rest, *w) for w in _find_lines_around(rest, new_spans)
                )
            )
            spans += new_spans
        return merge_spans(spans)

    def _scan_views(self, text: str) -> Iterator[SecretSpan]:
        """Find credentials in a text and in its views."""
        yield from self._scan_text(text)
        places = find_candidates(text)
        if view := blank_markup(text, places):
            for span in _scan_view(view, self._kingfisher.scan):
                # Spaces in place of brackets may have turned a placeholder into a credential.
                if not is_placeholder(text[span.start : span.end].rpartition(":")[2]):
                    yield span
        for view in filter(None, (fold_lookalikes(text), decode_parts(text, places))):
            yield from _scan_view(view, self._scan_text)
        for view, seams in join_lines(text):
            yield from _scan_over_seams(view, seams, load_token_rules())

    def _scan_text(self, text: str) -> Iterator[SecretSpan]:
        ours = list(load_own_rules().scan(text))
        yield from ours
        ends = {span.end: span.start for span in ours}
        for span in self._kingfisher.scan(text):
            # A kingfisher rule may include the user, as in `user:password`, or quotation marks.
            inner = next((ends[n] for n in (span.end, span.end - 1) if n in ends), span.start)
            yield SecretSpan(max(span.start, inner), span.end, span.rule)

    def _scan_part(self, text: str, start: int, end: int) -> Iterator[SecretSpan]:
        """Scan a part of a text as a whole and line by line; offsets refer to the whole text."""
        part = text[start:end]
        for span in self._scan_text(part):
            yield _shift(span, start)
        at = start
        for line in part.splitlines(keepends=True):
            for span in self._kingfisher.scan(line):
                yield _shift(span, at)
            at += len(line)


def _shift(span: SecretSpan, by: int) -> SecretSpan:
    return SecretSpan(span.start + by, span.end + by, span.rule)


def _find_lines_around(text: str, spans: Sequence[SecretSpan]) -> Iterator[tuple[int, int]]:
    """Yield the spans of lines near findings that a rule can reach; adjacent spans are joined."""
    low = high = -1
    for span in spans:
        start, end = span.start, span.end
        for _ in range(_LINES_AROUND):
            reach = max(0, start - _MAX_LINE_CHARACTERS)
            start = max(reach, text.rfind("\n", reach, start))
            reach = min(len(text), end + _MAX_LINE_CHARACTERS)
            line_end = text.find("\n", end + 1, reach)
            end = reach if line_end < 0 else line_end
        if start > high:
            if high >= 0:
                yield low, high
            low = start
        high = max(high, end)
    if high >= 0:
        yield low, high


def _scan_view(view: View, scan: Callable[[str], Iterable[SecretSpan]]) -> Iterator[SecretSpan]:
    return map(view.to_original, scan(view.text))


def _scan_over_seams(view: View, seams: list[Seam], rules: RuleSet) -> Iterator[SecretSpan]:
    """Find credentials across the seams of joined lines.

    A word after a complete token is not part of that token; after an incomplete token it may be.
    """
    readings = [view.text]
    if not seams[-1].certain:
        readings.append(view.text[: seams[-1].at])
    for span in chain.from_iterable(map(rules.scan, readings)):
        end = span.end
        line = max((seam.at for seam in seams if seam.at <= span.start), default=0)
        for seam in [seam for seam in seams if span.start < seam.at < span.end]:
            if not _is_continued(view.text, span, seam, line, rules):
                end = seam.at
                break
        if any(span.start < seam.at < end for seam in seams):
            yield view.to_original(SecretSpan(span.start, end, span.rule))


def _is_continued(text: str, span: SecretSpan, seam: Seam, line: int, rules: RuleSet) -> bool:
    """Return whether a token continues after a seam: no other token may start there."""
    if any(other.start == 0 for other in rules.scan(text[seam.at :])):
        return False
    if seam.certain and not seam.is_name:
        return True
    # A part of a complete token may look like the start of another.
    before = rules.scan(text[: seam.at])
    # The end of the previous line may hide the start of another token.
    before = chain(
        before, (_shift(span_before, line) for span_before in rules.scan(text[line : seam.at]))
    )
    is_complete = any(other.start <= span.start < other.end for other in before)
    return not is_complete and (seam.certain or span.end == seam.end)
