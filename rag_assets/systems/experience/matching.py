"""Whether two entries are the same problem solved the same way.

Equal but for their writing, they are. Otherwise both cosines must reach bounds that were calibrated
for the embedder, and the solutions must agree in what vectors hardly tell apart: numbers, versions,
identifiers, and whether something is to be done or not.
"""

from __future__ import annotations

import re
import unicodedata
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


def _of(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Without "one", which is a pronoun as often.
_WORD_NUMBERS = _of(
    "zero two three four five six seven eight nine ten eleven twelve twice thrice half double"
    " triple"
)
_IDENTIFIER = re.compile(
    r"""(?<![\w./-])(?:
        --?[A-Za-z][\w-]*                     # flags
      | [A-Za-z_$][\w$]*(?:\(\))              # calls
      | [\w$@-]+(?:[./:\\][\w$@*-]+)+         # paths, qualified names
      | [A-Z]\w*(?:-[A-Z]\w*)+                # headers
      | [A-Za-z]+_[\w]+                       # snake case
      | [a-z]+[A-Z]\w*                        # camel case
      | [A-Z][a-z]+[A-Z]\w*                   # Pascal case
      | [A-Z][A-Z0-9_]{2,}                    # constants
    )""",
    re.VERBOSE,
)
_QUOTED = re.compile(r"[`'\"]([^`'\"\n]{1,80})[`'\"]")
_WORD = re.compile(r"[a-z]+(?:'t)?")
_NEGATIONS = _of("not no never none nothing without cannot neither nor unless except")
_ENABLE = _of("enable enables enabled enabling activate activated")
_DISABLE = _of("disable disables disabled disabling deactivate deactivated")
_ADD = _of("add adds added adding include includes included including keep keeps kept create")
_REMOVE = _of("remove removes removed removing drop drops dropped delete deletes deleted") | _of(
    "exclude excludes excluded excluding"
)
_ALLOW = _of("allow allows allowed allowing permit permits permitted accept accepts accepted")
_DENY = _of("deny denies denied denying forbid forbids forbidden reject rejects rejected") | _of(
    "refuse refuses refused block blocks blocked"
)
_RAISE = _of("increase increases increased increasing raise raises raised raising higher more")
_LOWER = _of("decrease decreases decreased reduce reduces reduced lower lowers lowered less fewer")
_POLES: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (_ENABLE, _DISABLE),
    (_ADD, _REMOVE),
    (_ALLOW, _DENY),
    (_RAISE, _LOWER),
    (_of("before prior"), _of("after afterwards")),
    (_of("show shows shown showing"), _of("hide hides hidden hiding")),
    (_of("always"), _of("never")),
    (_of("on"), _of("off")),
    (_of("first"), _of("last")),
)
"""Words that turn a solution round, if one of two has the one and the other has the other."""


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
    if _numbers(first) != _numbers(second):
        return "a number or a version"
    if _identifiers(first) != _identifiers(second):
        return "an identifier"
    return "a negation" if _are_opposed(_words(first), _words(second)) else None


def _numbers(text: str) -> frozenset[str]:
    return frozenset(_NUMBER.findall(text)) | _WORD_NUMBERS.intersection(_words(text))


def _identifiers(text: str) -> frozenset[str]:
    named = {match.group().strip("()") for match in _IDENTIFIER.finditer(text)}
    named |= {match.group(1).strip() for match in _QUOTED.finditer(text)}
    return frozenset(name.strip("-./:").casefold() for name in named if not name.isdigit())


def _are_opposed(first: list[str], second: list[str]) -> bool:
    if _is_negated(first) != _is_negated(second):
        return True
    one, other = set(first), set(second)
    return any(
        _turned(pole, opposite, one, other) or _turned(opposite, pole, one, other)
        for pole, opposite in _POLES
    )


def _turned(pole: frozenset[str], opposite: frozenset[str], one: set[str], other: set[str]) -> bool:
    """Whether one text has only the one pole, and the other only its opposite."""
    only = bool(one & pole) and not one & opposite
    return only and bool(other & opposite) and not other & pole


def _is_negated(words: list[str]) -> bool:
    return any(word in _NEGATIONS or word.endswith("n't") for word in words)


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold())
