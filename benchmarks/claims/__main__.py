"""Score the citation check with judged sentences.

    python -m benchmarks.claims [--half developed|untouched] [--wrong] [--save]

Each sentence of claims.yaml cites its passage; random claims cite another passage of the same
language. Recall is the share of true sentences that are kept; "caught" is the share of wrong
sentences that are refused; precision is the share of true sentences among those called supported.
An `unchecked` sentence is kept, and is counted apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from benchmarks.measure import create_parser, save_result
from rag_assets.search.citations import CitationVerdict, verify_citations

CLAIMS: Final = Path(__file__).with_name("claims.yaml")
TRUE: Final = ("supported", "paraphrased")
HALVES: Final = ("developed", "untouched")
_STEP: Final = 4
"""Distance from a passage to the passage that its random sentences come from."""


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A citable passage (the protocol citations.CitablePassage)."""

    text: str
    number: int = 1
    title: str | None = None
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """A judged sentence.

    Attributes:
        languages: languages of the sentence and its passage, as de-en, or one if they are equal.
    """

    text: str
    passage: str
    kind: str
    languages: str

    @property
    def is_true(self) -> bool:
        """Return whether the passage supports the sentence."""
        return self.kind in TRUE

    def check(self) -> CitationVerdict:
        """Return the verdict of the citation check."""
        end = self.text[-1]
        answer = f"{self.text.removesuffix(end)} [1]{end}"
        sentences = verify_citations(answer, [CitedPassage(self.passage)])
        if len(sentences) != 1:
            raise ValueError(f"not a single sentence: {self.text}")
        return sentences[0].verdict


def read_claims(half: str) -> Iterator[Claim]:
    """Yield the claims that the rules were developed with, or those written afterwards."""
    passages = [*_read_passages(half)]
    for passage in passages:
        text, language = passage["passage"], passage["language"]
        for key, sentences in passage["claims"].items():
            kind, _, other = key.partition("/")
            languages = f"{other}-{language}" if other else language
            yield from (Claim(sentence, text, kind, languages) for sentence in sentences)
    yield from _draw_random_claims(passages)


def _read_passages(half: str) -> Iterator[Mapping[str, Any]]:
    for passage in YAML(typ="safe").load(CLAIMS):
        if passage.get("half", "developed") == half:
            yield passage


def _draw_random_claims(passages: Sequence[Mapping[str, Any]]) -> Iterator[Claim]:
    """Yield true sentences, each with another passage of the same language."""
    for language in dict.fromkeys(passage["language"] for passage in passages):
        same = [
            passage
            for passage in passages
            if passage["language"] == language and "supported" in passage["claims"]
        ]
        for at, passage in enumerate(same if len(same) > 1 else ()):
            other = same[(at + _STEP) % len(same)]
            if other is not passage:
                for sentence in passage["claims"]["supported"]:
                    yield Claim(sentence, other["passage"], "random", language)


def score_claims(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return recall, precision and the share of caught sentences, by languages and by kind."""
    by_group: dict[str, Counter[tuple[str, CitationVerdict]]] = defaultdict(Counter)
    for claim in claims:
        verdict = claim.check()
        languages = claim.languages
        group = "across languages" if "-" in languages else languages
        by_group[group][claim.kind, verdict] += 1
    return {group: _compute_figures(counts) for group, counts in by_group.items()}


def _compute_figures(counts: Counter[tuple[str, CitationVerdict]]) -> dict[str, Any]:
    def share(verdicts: set[str], kinds: set[str]) -> float | None:
        total = sum(n for (kind, _), n in counts.items() if kind in kinds)
        hits = sum(n for (kind, v), n in counts.items() if kind in kinds and v in verdicts)
        return round(hits / total, 3) if total else None

    kinds = {kind for kind, _ in counts}
    wrong = kinds - {*TRUE}
    called = sum(n for (_, verdict), n in counts.items() if verdict == "supported")
    rightly = sum(n for (k, v), n in counts.items() if k in TRUE and v == "supported")
    return {
        "true": sum(n for (kind, _), n in counts.items() if kind in TRUE),
        "recall": share({"supported", "unchecked"}, {*TRUE}),
        "unchecked of true": share({"unchecked"}, {*TRUE}),
        "wrong": sum(n for (kind, _), n in counts.items() if kind in wrong),
        "caught": share({"unsupported"}, wrong),
        "caught of near": share({"unsupported"}, wrong - {"random"}),
        "unchecked of wrong": share({"unchecked"}, wrong),
        "precision": round(rightly / called, 3) if called else None,
        "caught by kind": {kind: share({"unsupported"}, {kind}) for kind in sorted(wrong)},
    }


def main() -> None:
    """Print the figures, and save them with --save."""
    parser = create_parser(__doc__)
    parser.add_argument("--half", choices=HALVES, help="default: both")
    parser.add_argument(
        "--wrong", action="store_true", help="print sentences that were judged wrongly"
    )
    parser.add_argument("--save", action="store_true", help="write results/claims.json")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for half in [options.half] if options.half else HALVES:
        claims = [*read_claims(half)]
        results[half] = score_claims(claims)
        for group, figures in results[half].items():
            print(half, group, figures)
        for claim in claims if options.wrong else ():
            verdict = claim.check()
            if claim.is_true == (verdict == "unsupported"):
                print(f"{verdict:12} {claim.kind:12} {claim.languages:6} {claim.text}")
    if options.save:
        save_result("claims", {"taken": datetime.now(UTC).strftime("%Y-%m-%d"), **results})


if __name__ == "__main__":
    main()
