"""Passages as text for a model, between markers that no passage can imitate."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from rag_assets.plugins.registry import installed_systems

if TYPE_CHECKING:
    from rag_assets.search.model import Hit

_LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_RULES = frozenset(
    "-_=~*\u00af\u02c9\u05be\u2010\u2011\u2012\u2013\u2014\u2015\u203e\u2043\u2212\u2e3a\u2e3b"
    "\u30fb\u30fc"
)
_BOX_DRAWING = range(0x2500, 0x2580)
# Characters that look blank although Unicode puts them in categories of visible characters.
_BLANK = frozenset("\u115f\u1160\u2800")
_MAX_REMEMBERED = 4_096

# Characters that a model or a hasty reader takes for these ASCII characters. Unicode's data maps
# them to no ASCII character, or to a different one.
_ADDED: Mapping[str, str] = {
    twin: sign
    for sign, twins in {
        "b": "\u0432\u03b2\u044c",
        "e": "\u03b5\u0454",
        "i": "\ua4f2",
        "m": "\u043c\u03bc",
        "n": "\u03b7\u043f",
        "t": "\u0442\u03c4",
        "x": "\u03c7",
        "[": "\u3010\u3016\u3014\u3018\u301a\u27e6\u2045\u2772",
        "]": "\u3011\u3017\u3015\u3019\u301b\u27e7\u2046\u2773",
        "<": "\u2329\u276c\u2770\u27e8\u3008",
        ">": "\u232a\u276d\u2771\u27e9\u3009",
        "|": "\u01c0\u2223\u2758\u23d0\u2502\u2503\uffe8",
        ":": "\ufe30",
        "#": "\u266f",
    }.items()
    for twin in twins
}
_SPEAKER = r"(?:human|user|assistant|system|developer|question)"
_TASK = r"(?:instructions?|response|input|output|task)"
_TAGS = (
    r"(?:contexts?|system(?:-prompt)?|user|assistant|human|developer|passages?|search-results?|inst"
    r"|instructions?|question|function-(?:calls?|results?)|tool-(?:calls?|results?|responses?)"
    r"|s|bos|eos|pad|unk|mask|sep|cls|(?:start|end|begin)-of-[a-z-]{1,24}|fim-[a-z]{1,12}"
    r"|beginoftext|endoftext|eot|turn)"
)
# Patterns for folded text: lower case, without spaces, and with underscores as hyphens.
_TOKEN = re.compile(
    rf"""<\|[^<>|\n]{{1,64}}+(?:\|>|>)
    |<[\w-]{{1,40}}+\|>
    |</?{_TAGS}/?>
    |<</?sys>>
    |\[/?(?:inst|system-prompt|available-tools|tool-(?:calls|results|content))\]
    """,
    re.VERBOSE,
)
_LABEL = re.compile(
    rf"(?:\A|(?<=\n))(?:[^\w\n:]*+{_SPEAKER}|[^\w\n:#]*+\#[^\w\n:]*+{_TASK})[^\w\n:]{{0,8}}+:"
)
NOTHING_FOUND = "No relevant documentation found for your query."
# For folded text, which has no blanks. Possessive, so that no text is scanned twice.
_BETWEEN = r"[^\w\[\]]*+"
_SEAL = r"[0-9a-f]{0,64}+"
_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"\w")
_END_OF_SOURCE = re.compile(r"\)-{2,}")


def fold_text(text: str) -> str:
    """Reduce a text to its appearance, so that lookalike texts become equal; in linear time.

    The result is in lower case. Compatibility forms and letters of other scripts are replaced by
    the ASCII characters they look like. Blanks, accents and invisible characters are removed. Every
    line end becomes a line feed, every dash a hyphen.
    """
    return text.translate({ord(character): _fold_character(character) for character in set(text)})


def escape_places(text: str, places: Iterable[int]) -> str:
    """Insert backslashes into a text; `places` are positions in its folded form (see fold_text)."""
    wanted = sorted(set(places))
    if not wanted:
        return text
    ends = list(accumulate(len(_fold_character(character)) for character in text))
    # A character that is folded to several characters is escaped only once.
    cuts = sorted({bisect_right(ends, place) for place in wanted})
    return "\\".join(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))


@lru_cache(_MAX_REMEMBERED)
def _fold_character(character: str) -> str:
    if character in _LINE_ENDS:
        return "\n"
    if _is_rule_character(character):
        return "-"
    compatible = unicodedata.normalize("NFKD", character)
    whole = None if compatible.isascii() else _find_prototype(character)
    # Unicode's data maps both the capital I and the small l to the same letter.
    if whole is not None and whole != "l":
        return whole
    return _ADDED.get(character) or "".join(map(_get_lookalike, compatible))


def _get_lookalike(character: str) -> str:
    """Return the lower-case characters that a compatibility form looks like; empty if invisible."""
    if _is_rule_character(character):
        return "-"
    category = unicodedata.category(character)
    # Marks, separators and the category "other": characters that join, direct, vary or tag text,
    # and unassigned ones.
    if character in _BLANK or (category[0] in "MZC" and category != "Mc"):
        return ""
    prototype = _find_prototype(character)
    if prototype is not None:
        return prototype
    small = unicodedata.normalize("NFKD", character.casefold())
    visible = [
        character_part
        for character_part in small
        if unicodedata.category(character_part)[0] not in "MZC"
    ]
    return "".join(_find_prototype(character_part) or character_part for character_part in visible)


def _find_prototype(character: str) -> str | None:
    """Return the lower-case ASCII letter, digit or symbol that a character looks like, or None."""
    if character.isascii():
        return character.casefold()
    if character in _ADDED:
        return _ADDED[character]
    prototype = _load_prototypes().get(character)
    if prototype == "l" and character.casefold() != character:  # A capital I of any alphabet.
        return "i"
    return prototype or _get_letter_of_small_capital(character)


@lru_cache(maxsize=1)
def _load_prototypes() -> Mapping[str, str]:
    """Return lookalikes of single ASCII characters from Unicode's data (UTS 39), by character."""
    from confusable_homoglyphs.confusables import confusables_data

    return {
        character: other["c"].casefold()
        for character, others in confusables_data.items()
        for other in others
        if len(character) == len(other["c"]) == 1
        and other["c"].isascii()
        and not character.isascii()
        and not other["c"].isspace()
    }


def _get_letter_of_small_capital(character: str) -> str | None:
    """Return the letter that a small capital looks like; None for any other character.

    Unicode's data on lookalikes lacks most small capitals.
    """
    _, small, letter = unicodedata.name(character, "").partition("LETTER SMALL CAPITAL ")
    return letter.lower() if small and len(letter) == 1 else None


def _is_rule_character(character: str) -> bool:
    drawn = ord(character) in _BOX_DRAWING and character not in _ADDED
    return drawn or character in _RULES


def find_chat_markup(folded: str) -> Iterator[int]:
    """Yield the positions in a folded text where an inserted character breaks up chat markup.

    Each position lies inside the markup, because tokenizers recognize markup anywhere, even after a
    backslash.
    """
    for match in _TOKEN.finditer(folded):
        yield match.start() + 1
    for match in _LABEL.finditer(folded):
        yield match.end() - 1


def _build_lookalike_pattern(word: str) -> str:
    """Return a pattern for a word that also matches digits and symbols resembling its letters."""
    return word.translate({ord("o"): "[o0]", ord("i"): "[i1l|]", ord("l"): "[l1i|]"})


_RESULT = rf"(?:{_build_lookalike_pattern('result')}|{_build_lookalike_pattern('passage')}\[)\d"

_ANYWHERE = re.compile(
    rf"""\[{_BETWEEN}(?:(?:end|{_build_lookalike_pattern("begin")}|start){_BETWEEN}{_build_lookalike_pattern("context")}{_BETWEEN}{_SEAL}
        |{_build_lookalike_pattern("context")}){_BETWEEN}\]
    |\[{_BETWEEN}{_build_lookalike_pattern("orchestrator")}{_BETWEEN}{_build_lookalike_pattern("context")}
    |(?<!-)-{{3,}}+{_RESULT}
    """,
    re.VERBOSE,
)


@lru_cache(maxsize=1)
def _compile_marker_lines() -> re.Pattern[str]:
    """Compile the pattern of lines that start a result or a section of a prompt."""
    headings = [
        _BETWEEN.join(map(_build_lookalike_pattern, heading.lower().split()))
        for installed in installed_systems()
        for heading in installed.system.prompt_headings
    ]
    # Without headings, a pattern that never matches.
    heading = "|".join(headings) or "(?!)"
    return re.compile(rf"(?:\A|(?<=\n))(?P<signs>[^\w\n]++)(?:{_RESULT}|(?P<heading>{heading}))")


def format_hits(hits: Sequence[Hit]) -> str:
    """Format hits as an agent's tool shows them; without hits, return a sentence that says so."""
    return format_passages(
        (hit.number, hit.score, hit.url or hit.uri, hit.text_in_context) for hit in hits
    )


def format_passages(results: Iterable[tuple[int, float | None, str, str]]) -> str:
    """Format the number, score, source and text of passages as an agent's tool shows them."""
    shown = (
        f"--- Result {number} (score: {_format_score(score)},"
        f" source: {format_source(source)}) ---\n"
        f"{escape_imitations(text)}"
        for number, score, source, text in results
    )
    return "\n\n".join(shown) or NOTHING_FOUND


def _format_score(score: float | None) -> str:
    return "n/a" if score is None else f"{score:.3f}"


def escape_imitations(text: str) -> str:
    """Escape imitations of markers in a text with a backslash.

    The text of a document is data. It must not look like the end or start of a passage, or like the
    end or start of a turn in a model conversation. Imitations look like `--- Result N`, `---
    docs/file.md ---`, `[END CONTEXT]`, `[ORCHESTRATOR CONTEXT: …]`, `<|im_end|>`, `Human:`, or `##
    ` before a heading that a system adds to prompts.
    """
    shape = fold_text(text)
    return escape_places(text, [*_find_imitations(shape), *find_chat_markup(shape)])


def format_source(text: str) -> str:
    """Format a document's name for the line above its passage; no name can end this line."""
    line = " ".join(text.split())
    shape = fold_text(line)
    ends = (match.start() for match in _END_OF_SOURCE.finditer(shape))
    return escape_places(line, [*_find_imitations(shape), *find_chat_markup(shape), *ends])


def _find_imitations(shape: str) -> Iterator[int]:
    """Yield the positions of imitated markers in a folded text."""
    for match in _ANYWHERE.finditer(shape):
        yield match.start()
    for match in _compile_marker_lines().finditer(shape):
        at = match["signs"].find("#" if match["heading"] else "-")
        if at >= 0:
            yield match.start() + at
    for line in _LINE.finditer(shape):
        yield from _find_file_announcement(line)


def _find_file_announcement(line: re.Match[str]) -> Iterator[int]:
    """Yield the position at which to escape a line like `--- docs/file.md ---`, if it is one."""
    text = line[0]
    begin, end = text.find("---"), text.rfind("---")
    if begin >= 0 and _WORD.search(text, begin, end) and not _WORD.search(text, 0, begin):
        yield line.start() + begin
