"""Measure how much of the judged set a scanner finds, and what else it masks.

    python -m tests.security.credentials.measure --half tuning --failures

A credential is found if all its letters and digits are masked. A masked span is right if it touches
a credential and covers no clean word; adjacent punctuation and quotation marks may be masked. For
the held-out half, only figures are printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tests.rules import shared_scanner
from tests.security.credentials.clean import speaks_of_credentials
from tests.security.credentials.dataset import samples
from tests.security.credentials.documents import file_of, spans_in
from tests.security.credentials.model import Half, Sample, Span

Scan = Callable[[str], Sequence[Span]]
"""A plain text → what is masked of it."""

Mask = Callable[[bytes, str], tuple[str, Sequence[Span]]]
"""A document and its media type → its text before masking, and what is masked of it."""

_LONG = 200
_BETWEEN_LINES = 0.04


@dataclass(slots=True)
class Verdict:
    """The credentials found and missed, and the spans masked in vain.

    Attributes:
        found, missed: credentials, by (kind, context).
        right, wrong: masked spans.
        clean_lines, flagged_lines: lines of clean texts, and those with a masked character.
        near_lines, flagged_near: those of them with a word such as password or token.
        misses, excesses: descriptions for whoever improves the scanner.
    """

    found: Counter[tuple[str, str]] = field(default_factory=Counter, repr=False)
    missed: Counter[tuple[str, str]] = field(default_factory=Counter, repr=False)
    right: int = 0
    wrong: int = 0
    clean_lines: int = 0
    flagged_lines: int = 0
    near_lines: int = 0
    flagged_near: int = 0
    misses: list[tuple[str, str, str]] = field(default_factory=list, repr=False)
    excesses: list[tuple[str, str, str]] = field(default_factory=list, repr=False)

    @property
    def recall(self) -> float:
        """Return the share of credentials that were found."""
        found = self.found.total()
        return found / max(1, found + self.missed.total())

    @property
    def precision(self) -> float:
        """Return the share of masked spans that contain only a credential."""
        return self.right / max(1, self.right + self.wrong)

    @property
    def flagged(self) -> float:
        """Return the share of clean lines with a masked character."""
        return self.flagged_lines / max(1, self.clean_lines)

    @property
    def flagged_near_share(self) -> float:
        """Return this share for clean lines with a word such as password or token."""
        return self.flagged_near / max(1, self.near_lines)

    def recall_by(self, part: int) -> dict[str, tuple[int, int]]:
        """Return the numbers found and in total, by kind (part 0) or context (part 1)."""
        table: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for counter, hit in ((self.found, 1), (self.missed, 0)):
            for key, count in counter.items():
                found, everything = table[key[part]]
                table[key[part]] = (found + hit * count, everything + count)
        return dict(sorted(table.items()))


def measure(judged: Iterable[Sample], scan: Scan, mask: Mask) -> Verdict:
    """Judge what a scanner masks in samples.

    Args:
        judged: the samples.
        scan: returns the masked spans of a plain text.
        mask: parses and masks a document, for samples with a media type.
    """
    verdict = Verdict()
    for sample in judged:
        text, spans, may = sample.text, sample.spans, sample.may
        if sample.media_type is None:
            masked = scan(text)
        else:
            text, masked = mask(*file_of(sample))
            spans, may = spans_in(sample, text)
        _judge(verdict, sample, text, spans, may, masked)
    return verdict


def _judge(
    verdict: Verdict,
    sample: Sample,
    text: str,
    spans: Sequence[Span],
    may: Sequence[Span],
    masked: Sequence[Span],
) -> None:
    covered = _covering(masked, len(text))
    key = (sample.kind, sample.context)
    for start, end in spans:
        if _is_found(text, covered, start, end):
            verdict.found[key] += 1
        else:
            verdict.missed[key] += 1
            verdict.misses.append((*key, text))
    allowed = _covering([*spans, *may], len(text))
    for start, end in masked:
        too_much = any(text[i].isalnum() and not allowed[i] for i in range(start, end))
        touches = any(start < to and since < end for since, to in spans)
        if touches and not too_much:
            verdict.right += 1
        elif too_much or not any(allowed[start:end]):
            verdict.wrong += 1
            verdict.excesses.append((*key, text[start:end]))
    if not spans:
        _count_lines(verdict, text, covered, _covering(may, len(text)))


def _covering(spans: Iterable[Span], length: int) -> bytearray:
    covered = bytearray(length)
    for start, end in spans:
        covered[start:end] = b"\1" * (min(end, length) - start)
    return covered


def _is_found(text: str, covered: bytearray, start: int, end: int) -> bool:
    """Return whether only punctuation is left of a credential, and less than a quarter of it.

    Text between the lines of a key that is not part of it, such as `<br>`, may be left.
    """
    left = [text[i] for i in range(start, end) if not covered[i] and not text[i].isspace()]
    letters = sum(map(str.isalnum, left))
    if end - start >= _LONG:
        return letters < _BETWEEN_LINES * (end - start)
    return letters == 0 and 4 * len(left) < max(4, end - start)


def _count_lines(verdict: Verdict, text: str, covered: bytearray, may: bytearray) -> None:
    at = 0
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        if line.strip() and not any(may[at:end]):
            near, flagged = speaks_of_credentials(line), any(covered[at:end])
            verdict.clean_lines += 1
            verdict.flagged_lines += flagged
            verdict.near_lines += near
            verdict.flagged_near += near and flagged
        at = end


def project_scan() -> Scan:
    """Return a function that finds what the project masks in a plain text."""
    scanner = shared_scanner()
    return lambda text: [(found.start, found.end) for found in scanner.scan(text)]


def project_mask() -> Mask:
    """Return a function that parses a document in this process and masks it as the project does."""
    from rag_assets.ingest.parsing.masking import mask_document
    from rag_assets.ingest.parsing.registry import parse

    scanner = shared_scanner()

    def mask(data: bytes, media_type: str) -> tuple[str, Sequence[Span]]:
        parsed = parse(data, media_type)
        return parsed.text, [(s.start, s.end) for s in mask_document(parsed, scanner).masked]

    return mask


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure one half and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--half", choices=["tuning", "held_out"], default="tuning")
    parser.add_argument("--failures", action="store_true", help="of the tuning half alone")
    parser.add_argument("--kind", help="this kind alone")
    parser.add_argument("--seed", type=int, default=2026, help="of the random values")
    chosen = parser.parse_args(arguments)
    half: Half = chosen.half
    if chosen.failures and half != "tuning":
        parser.error("misses are told of the tuning half alone")
    judged = [s for s in samples(half, seed=chosen.seed) if chosen.kind in {None, s.kind}]
    since = time.perf_counter()
    verdict = measure(judged, project_scan(), project_mask())
    _say(f"{half}: {len(judged)} samples in {time.perf_counter() - since:.0f} s")
    _report(verdict, contexts=half == "tuning")
    if chosen.failures:
        _say_failures(verdict)
    return 0


def _report(verdict: Verdict, *, contexts: bool) -> None:
    _say(
        f"recall {verdict.recall:.4f} "
        f"({verdict.found.total()} found, {verdict.missed.total()} missed)"
    )
    _say(f"precision {verdict.precision:.4f} ({verdict.right} right, {verdict.wrong} wrong)")
    _say(f"clean lines flagged {verdict.flagged:.4%} of {verdict.clean_lines}")
    _say(f"  that speak of credentials {verdict.flagged_near_share:.4%} of {verdict.near_lines}")
    for part, what in ((0, "kind"), (1, "context"))[: 1 + contexts]:
        _say(f"\nrecall by {what}, where it is below 1:")
        for name, (found, everything) in verdict.recall_by(part).items():
            if found < everything:
                _say(f"  {name:45} {found:4} of {everything}")


def _say_failures(verdict: Verdict) -> None:
    _say("\nmissed:")
    for kind, context, text in verdict.misses:
        _say(f"  {kind} in {context}: {text[:400]!r}")
    _say("\nmasked in vain:")
    for kind, context, text in verdict.excesses:
        _say(f"  {kind} in {context}: {text[:200]!r}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
