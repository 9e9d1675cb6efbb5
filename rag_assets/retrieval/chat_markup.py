"""Chat markup: text that models take for the end of a turn or the start of another."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SPEAKER = r"(?:human|user|assistant|system|developer|question)"
_TASK = r"(?:instructions?|response|input|output|task)"
_TAGS = (
    r"(?:contexts?|system(?:-prompt)?|user|assistant|human|developer|passages?|search-results?|inst"
    r"|instructions?|question|function-(?:calls?|results?)|tool-(?:calls?|results?|responses?)"
    r"|s|bos|eos|pad|unk|mask|sep|cls|(?:start|end|begin)-of-[a-z-]{1,24}|fim-[a-z]{1,12}"
    r"|beginoftext|endoftext|eot|turn)"
)

# Patterns for a folded text: lower case, without spaces, underscores as hyphens.
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


def chat_marks(folded: str) -> Iterator[int]:
    """Yield positions in a folded text at which an inserted character breaks a chat mark.

    Each position lies inside a mark. Tokenizers find marks anywhere, even after a backslash.
    """
    for found in _TOKEN.finditer(folded):
        yield found.start() + 1
    for found in _LABEL.finditer(folded):
        yield found.end() - 1
