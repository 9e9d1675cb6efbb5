"""Chat markup: text that chat models read as the end of one turn or the start of another."""

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


def chat_marks(folded: str) -> Iterator[int]:
    """Yield the positions in a folded text where an inserted character breaks up chat markup.

    Each position lies inside the markup, because tokenizers recognize markup anywhere, even after a
    backslash.
    """
    for found in _TOKEN.finditer(folded):
        yield found.start() + 1
    for found in _LABEL.finditer(folded):
        yield found.end() - 1
