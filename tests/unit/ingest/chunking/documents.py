"""Documents for the chunking tests: Markdown-like text with the blocks of a parser."""

import re
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from rag_assets.ingest.parsing.model import Block, BlockKind, MaskedSpan, ParsedText
from tests.chunking import parameters_of

WORDS = [
    *(
        "the", "of", "retrieval", "vector", "tenant", "partition", "materialize", "overlap", "x",
        "=",
    ),
    *("naïve", "Größe", "漢字仮名交じり文", "cafe\u0301"),
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    *("=", "foo(bar)", "https://example.org/a/very/long/path/to/see"),
    *("e.g.", "3.14", "Mr.", "かな。文", "a" * 200),
]  # fmt: skip


def parsed_from(
    parts: list[tuple[BlockKind, str]], *, title: str | None = None, pages: bool = False
) -> ParsedText:
    """Join blocks with blank lines; a heading's level is its number of # signs.

    A row has the number of its part. With pages, every part has its own page and slide, and every
    ten parts a sheet.
    """
    text, blocks, path = "", [], [""] * 6
    for number, (kind, content) in enumerate(parts, 1):
        level = 0
        if kind == "heading":
            signs = re.match("#+", content)
            assert signs
            level = len(signs[0])
            path = [*path[: level - 1], content[level:].strip(), *[""] * (6 - level)]
        above = tuple(part for part in path if part)
        span = (len(text), len(text) + len(content))
        page = number if pages else None
        sheet = f"Sheet {number // 10}" if pages else None
        row = number if kind == "row" else None
        blocks.append(Block(kind, *span, above, level, page, page, sheet, row))
        text += content + "\n\n"
    return ParsedText(text, tuple(blocks), title, len(parts) if pages else None)


def with_masks(parsed: ParsedText, *masked: tuple[str, str]) -> ParsedText:
    """Mask the first occurrence of each text, with the name of the rule after it."""
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
rows = st.lists(lines, min_size=1, max_size=6).map(" | ".join)
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
    st.tuples(st.just("row"), rows),
)


@st.composite
def documents(draw: st.DrawFn) -> ParsedText:
    """Draw a realistic document: with or without front matter, title, pages, Windows line ends."""
    body = draw(st.lists(parts, max_size=25))
    if draw(st.booleans()):
        body = [(kind, content.replace("\n", "\r\n")) for kind, content in body]
    if draw(st.booleans()):
        body = [("front_matter", "---\ntitle: Front\n---"), *body]
    return parsed_from(body, title=draw(st.none() | st.just("Title")), pages=draw(st.booleans()))


@st.composite
def masked_documents(draw: st.DrawFn) -> ParsedText:
    """Draw a document with masked spans anywhere."""
    parsed = draw(documents())
    at = st.integers(0, max(0, len(parsed.text) - 1))
    spans = draw(st.lists(st.tuples(at, st.integers(1, 200)), max_size=4))
    rule = "described-sk"
    masked = tuple(MaskedSpan(a, min(a + n, len(parsed.text)), rule) for a, n in sorted(spans))
    return replace(parsed, masked=masked)


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
    """Draw any text with any ordered blocks, also with gaps between them."""
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


def prose(sentences: int) -> str:
    """Return different sentences of about ten tokens."""
    nouns = ["index", "vector", "tenant", "chunk", "window", "lake", "catalog"]
    return " ".join(
        sentence(["the", nouns[n % 7], "keeps", str(n), "entries", "of", "its", nouns[n % 5]])
        for n in range(sentences)
    )


limits = st.sampled_from([(16, 0), (16, 8), (24, 5), (64, 16), (128, 20), (256, 32), (300, 150)])
parameters = st.sampled_from(
    [
        parameters_of(*fields)
        for fields in [
            *[("heading", 16, 0), ("heading", 24, 5), ("heading", 220, 32), ("heading", 300, 150)],
            *[("recursive", 16, 8), ("recursive", 64, 16), ("recursive", 512, 64)],
            *[("sentence", 64, 0), ("sentence", 64, 32), ("sentence", 300, 40)],
            *[("sentence", 2000, 200), ("record", 16, 0), ("record", 128, 0)],
        ]
    ]
)
