"""Whether two entries are the same problem solved the same way.

Equal but for their writing, they are. Otherwise both cosines must reach bounds that were calibrated
for the embedder, and the solutions must agree in what vectors hardly tell apart: numbers, versions,
identifiers, and whether something is to be done or not.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rag_assets.common.hashing import key_of
from rag_assets.systems.experience.model import ANY_AGENT
from rag_assets.systems.experience.wording import Worded, problem_of, solution_of


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least cosines of two entries that are the same.

    Attributes:
        problem, solution: of their problems, and of their solutions.
    """

    problem: float
    solution: float


# Calibrated on half of the labelled pairs of examples/experience (decision 0088).
BOUNDS: Mapping[str, Bounds] = {}
"""By `provider/model` of the embedder; without bounds only equal entries are merged."""

_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_WORD_NUMBERS = frozenset(
    [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "twice",
        "thrice",
        "half",
        "double",
        "triple",
    ]
)
_IDENTIFIER = re.compile(
    r"""(?<![\w./-])(?:
        --?[A-Za-z][\w-]*                     # flags
      | [A-Za-z_$][\w$]*(?:\(\))              # calls
      | [\w$@-]+(?:[./:\\][\w$@*-]+)+         # paths, qualified names
      | [A-Za-z]+_[\w]+                       # snake case
      | [a-z]+[A-Z]\w*                        # camel case
      | [A-Z][a-z]+[A-Z]\w*                   # Pascal case
      | [A-Z][A-Z0-9_]{2,}                    # constants
    )""",
    re.VERBOSE,
)
_QUOTED = re.compile(r"[`'\"]([^`'\"\n]{1,80})[`'\"]")
_WORD = re.compile(r"[a-z]+(?:'t)?")
_NEGATIONS = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "nothing",
        "without",
        "cannot",
        "n't",
        "neither",
        "nor",
        "unless",
        "except",
        "instead",
    ]
)
_OPPOSITES: Mapping[str, str] = {
    word: name
    for name, words in {
        "turned on": "enable enables enabled enabling activate activated",
        "turned off": "disable disables disabled disabling deactivate deactivated",
        "added": "add adds added adding include includes included including",
        "removed": "remove removes removed removing drop drops dropped delete deletes deleted"
        " exclude excludes excluded excluding",
        "allowed": "allow allows allowed allowing permit permits permitted accept accepts",
        "denied": "deny denies denied denying forbid forbids forbidden reject rejects refuse"
        " refuses block blocks blocked",
        "earlier": "before prior earlier",
        "later": "after afterwards later",
        "more": "increase increases increased increasing raise raises raised raising",
        "less": "decrease decreases decreased decreasing reduce reduces reduced reducing lower"
        " lowers lowered lowering",
        "only": "only solely exclusively",
        "always": "always every",
    }.items()
    for word in words.split()
}


def exact_key(entry: Worded) -> str:
    """Equal for entries that differ in nothing but case, blanks and ways to write a character."""
    return key_of(
        "experience",
        entry.entry_type,
        (entry.gate_type or "").casefold(),
        (entry.agent_type or ANY_AGENT).casefold(),
        normalised(problem_of(entry)),
        normalised(solution_of(entry)),
    )


def problem_key(entry: Worded) -> str | None:
    """Equal for entries with the same problem, whatever solved it; None: it says none."""
    if entry.entry_type == "gate_approval":
        return None
    return key_of(
        "experience problem",
        entry.entry_type,
        (entry.gate_type or "").casefold(),
        (entry.agent_type or ANY_AGENT).casefold(),
        normalised(problem_of(entry)),
    )


def normalised(text: str) -> str:
    """A text without differences of case, blanks and ways to write a character."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def differ(first: str, second: str) -> str | None:
    """In what two solutions differ that vectors hardly tell apart; None: in nothing of the kind."""
    for name, facts in (
        ("a number or a version", _numbers),
        ("an identifier", _identifiers),
        ("a negation", _directions),
    ):
        if facts(first) != facts(second):
            return name
    return None


def _numbers(text: str) -> Counter[str]:
    found = Counter(_NUMBER.findall(text))
    found.update(word for word in _words(text) if word in _WORD_NUMBERS)
    return Counter(set(found))


def _identifiers(text: str) -> frozenset[str]:
    named = {match.group().strip("()") for match in _IDENTIFIER.finditer(text)}
    named |= {match.group(1).strip() for match in _QUOTED.finditer(text)}
    return frozenset(name.strip("-./:").casefold() for name in named if not name.isdigit())


def _directions(text: str) -> Counter[str]:
    words = _words(text)
    found = Counter(name for word in words if (name := _OPPOSITES.get(word)) is not None)
    negations = sum(word in _NEGATIONS or word.endswith("n't") for word in words)
    kinds = Counter(set(found))
    kinds["not"] = min(negations, 1)
    return kinds


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold())
