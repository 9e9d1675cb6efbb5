"""Hits as text for a model: passages between markers that no passage can imitate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rag_assets.plugins.registry import installed_systems
from rag_assets.search.chat_markup import chat_marks
from rag_assets.search.confusables import escaped, folded

if TYPE_CHECKING:
    from rag_assets.search.model import Hit

NOTHING_FOUND = "No relevant documentation found for your query."

# For folded text, which has no blanks. Possessive, so that no text is scanned twice.
_BETWEEN = r"[^\w\[\]]*+"


def _alike(word: str) -> str:
    """Return a pattern for a word that also matches digits and symbols resembling its letters."""
    return word.translate({ord("o"): "[o0]", ord("i"): "[i1l|]", ord("l"): "[l1i|]"})


_RESULT = rf"(?:{_alike('result')}|{_alike('passage')}\[)\d"
_SEAL = r"[0-9a-f]{0,64}+"

_ANYWHERE = re.compile(
    rf"""\[{_BETWEEN}(?:(?:end|{_alike("begin")}|start){_BETWEEN}{_alike("context")}{_BETWEEN}{_SEAL}
        |{_alike("context")}){_BETWEEN}\]
    |\[{_BETWEEN}{_alike("orchestrator")}{_BETWEEN}{_alike("context")}
    |(?<!-)-{{3,}}+{_RESULT}
    """,
    re.VERBOSE,
)
_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"\w")
_END_OF_SOURCE = re.compile(r"\)-{2,}")


@lru_cache(maxsize=1)
def _marker_lines() -> re.Pattern[str]:
    """Compile the pattern of lines that start a result or a section of a prompt."""
    headings = [
        _BETWEEN.join(map(_alike, heading.lower().split()))
        for installed in installed_systems()
        for heading in installed.system.prompt_headings
    ]
    # Without headings, a pattern that never matches.
    heading = "|".join(headings) or "(?!)"
    return re.compile(rf"(?:\A|(?<=\n))(?P<signs>[^\w\n]++)(?:{_RESULT}|(?P<heading>{heading}))")


def as_results(hits: Sequence[Hit]) -> str:
    """Format hits as an agent's tool shows them; without hits, return a sentence that says so."""
    return results_text(
        (hit.number, hit.score, hit.url or hit.uri, hit.text_in_context) for hit in hits
    )


def results_text(results: Iterable[tuple[int, float | None, str, str]]) -> str:
    """Format the number, score, source and text of passages as an agent's tool shows them."""
    shown = (
        f"--- Result {number} (score: {_score(score)}, source: {as_source(source)}) ---\n"
        f"{neutralised(text)}"
        for number, score, source, text in results
    )
    return "\n\n".join(shown) or NOTHING_FOUND


def _score(score: float | None) -> str:
    return "n/a" if score is None else f"{score:.3f}"


def neutralised(text: str) -> str:
    """Escape imitations of markers in a text with a backslash.

    The text of a document is data. It must not look like the end or start of a passage, or like the
    end or start of a turn in a model conversation. Imitations look like `--- Result N`, `---
    docs/file.md ---`, `[END CONTEXT]`, `[ORCHESTRATOR CONTEXT: …]`, `<|im_end|>`, `Human:`, or `##
    ` before a heading that a system adds to prompts.
    """
    shape = folded(text)
    return escaped(text, [*_imitations(shape), *chat_marks(shape)])


def as_source(text: str) -> str:
    """Return a document's name for the line above its passage; the name cannot end that line."""
    line = " ".join(text.split())
    shape = folded(line)
    ends = (found.start() for found in _END_OF_SOURCE.finditer(shape))
    return escaped(line, [*_imitations(shape), *chat_marks(shape), *ends])


def _imitations(shape: str) -> Iterator[int]:
    """Yield the positions of imitated markers in a folded text."""
    for found in _ANYWHERE.finditer(shape):
        yield found.start()
    for found in _marker_lines().finditer(shape):
        at = found["signs"].find("#" if found["heading"] else "-")
        if at >= 0:
            yield found.start() + at
    for line in _LINE.finditer(shape):
        yield from _rule_around_words(line)


def _rule_around_words(line: re.Match[str]) -> Iterator[int]:
    """Yield the position of a line like `--- docs/file.md ---`, which announces a file."""
    text = line[0]
    begin, end = text.find("---"), text.rfind("---")
    if begin >= 0 and _WORD.search(text, begin, end) and not _WORD.search(text, 0, begin):
        yield line.start() + begin
