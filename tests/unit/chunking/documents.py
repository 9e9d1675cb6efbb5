"""Documents for the chunking tests: Markdown-like text with the blocks a parser would find."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import strategies as st

from rag_assets.parsing.model import Block, BlockKind, MaskedSpan, ParsedText

WORDS = [
    *(
        "the",
        "of",
        "retrieval",
        "vector",
        "tenant",
        "partition",
        "materialize",
        "overlap",
        "x",
        "=",
    ),
    *(
        "naïve",
        "Größe",
        "漢字仮名交じり文",
        "cafe\u0301",
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    ),
    *("=", "foo(bar)", "https://example.org/a/very/long/path/to/see"),
]


def parsed_from(
    parts: list[tuple[BlockKind, str]], *, title: str | None = None, pages: bool = False
) -> ParsedText:
    """Blocks joined by blank lines; a heading's level is its number of signs."""
    text, blocks, path = "", [], [""] * 6
    for number, (kind, content) in enumerate(parts, 1):
        level = 0
        if kind == "heading":
            signs = re.match("#+", content)
            assert signs
            level = len(signs[0])
            path = [*path[: level - 1], content[level:].strip(), *[""] * (6 - level)]
        above = tuple(part for part in path if part)
        page = number if pages else None
        blocks.append(Block(kind, len(text), len(text) + len(content), above, level, page))
        text += content + "\n\n"
    return ParsedText(text, tuple(blocks), title, len(parts) if pages else None)


def with_masks(parsed: ParsedText, *masked: tuple[str, str]) -> ParsedText:
    """Mask the first occurrence of each needle, as found by the rule named with it."""
    text, spans = parsed.text, []
    for needle, rule in masked:
        at = text.index(needle)
        spans.append(MaskedSpan(at, at + len(needle), rule))
        text = text.replace(needle, "*" * len(needle), 1)
    return ParsedText(text, parsed.blocks, parsed.title, parsed.pages, tuple(spans))


def sentence(words: list[str]) -> str:
    return " ".join(words).capitalize() + "."


sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=25).map(sentence)
lines = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
paragraphs = st.lists(sentences, min_size=1, max_size=12).map(" ".join)
codes = st.lists(lines, min_size=1, max_size=20).map(lambda x: "```\n" + "\n".join(x) + "\n```")
tables = st.lists(lines, min_size=1, max_size=12).map(lambda x: "\n".join(f"| {y} |" for y in x))
lists = st.lists(lines, min_size=1, max_size=12).map(lambda x: "\n".join(f"- {y}" for y in x))
headings = st.builds(
    lambda level, line: "#" * level + " " + line, st.integers(1, 4), st.sampled_from(WORDS)
)

parts = st.one_of(
    st.tuples(st.just("heading"), headings),
    st.tuples(st.just("paragraph"), paragraphs),
    st.tuples(st.just("paragraph"), paragraphs),
    st.tuples(st.just("code"), codes),
    st.tuples(st.just("table"), tables),
    st.tuples(st.just("list"), lists),
)


@st.composite
def documents(draw: st.DrawFn) -> ParsedText:
    """Realistic documents, sometimes with front matter, a title, pages."""
    body = draw(st.lists(parts, max_size=25))
    if draw(st.booleans()):
        body = [("front_matter", "---\ntitle: Front\n---"), *body]
    return parsed_from(body, title=draw(st.none() | st.just("Title")), pages=draw(st.booleans()))


# Any characters at all, weighted towards what cuts go wrong at.
wild_texts = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            [*WORDS, "\r\n", "\n\n", " ", "\u0301", "\u200d", "🇩🇪", "한글", "क्षि", ". "]
        ),
        st.builds(
            lambda s, n: s * n,
            st.sampled_from([" ", "\n", "a", ".", "漢", "👍🏽"]),
            st.integers(1, 300),
        ),
    ),
    max_size=60,
).map("".join)


@st.composite
def wild_documents(draw: st.DrawFn) -> ParsedText:
    """Any text with any blocks in order, gaps between them included."""
    text = draw(wild_texts)
    ends = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    kinds = st.sampled_from(["heading", "paragraph", "code", "table", "list"])
    blocks = []
    for start, end in pairwise(ends):
        kind = draw(kinds)
        blocks.append(Block(kind, start, end, ("h",), 1 if kind == "heading" else 0))
        if draw(st.integers(0, 3)) == 0:
            blocks.pop()
    return ParsedText(text, tuple(blocks))


limits = st.sampled_from([(16, 0), (16, 8), (24, 5), (64, 16), (128, 20), (256, 32), (300, 150)])
