import random
from dataclasses import replace
from itertools import pairwise

import pytest

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.chunkers import HEADING
from rag_assets.ingest.chunking.kinds import UNREAD, ChunkParameters, CutText
from rag_assets.ingest.chunking.model import Definition, Fact, build_embedding_text, normalize_code
from rag_assets.ingest.parsing.markdown import parse_markdown
from rag_assets.ingest.parsing.model import MaskedSpan, ParsedText
from rag_assets.systems.code_memory import chunker
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit

LIMIT = 200
USUAL = ChunkParameters(chunker.CODE, 1200, 200)


def cut(text: str, units: tuple[Unit, ...], minimum: int = 20, limit: int = LIMIT):
    parameters = ChunkParameters(chunker.CODE, limit, 0)
    request = parameters.request(ParsedText(text, (), media_type="text/x-php"))
    object.__setattr__(request, "minimum", minimum)
    return chunker._split_along_units(request, CodeText(units, ()))


def units_of(text: str, *pieces: tuple[str, bool]) -> tuple[Unit, ...]:
    found, at = [], 0
    for number, (piece, alone) in enumerate(pieces):
        start = text.index(piece, at)
        at = start + len(piece)
        found.append(Unit(start, at, "function", f"f{number}", f"def f{number}", alone=alone))
    return tuple(found)


def test_what_stands_alone_stays_alone_and_the_rest_is_joined() -> None:
    pieces = [("a = 1", False), ("b = 2", False), ("def one(): pass", True), ("c = 3", False)]
    text = "\n\n".join(piece for piece, _ in pieces)
    passages = cut(text, units_of(text, *pieces))
    assert [(text[p.start : p.end], p.definition) for p in passages] == [
        ("a = 1\n\nb = 2", Definition("function", "")),
        ("def one(): pass", Definition("function", "f2", "def f2")),
        ("c = 3", Definition("function", "f3", "def f3")),
    ]


def test_small_units_are_joined_until_they_have_the_minimum_and_no_further() -> None:
    pieces = [(f"value_{number} = {number}", False) for number in range(40)]
    text = "\n\n".join(piece for piece, _ in pieces)
    passages = cut(text, units_of(text, *pieces), minimum=50)
    sizes = [p.token_count for p in passages]
    assert all(50 <= size <= 60 for size in sizes[:-1])
    assert sum(sizes) <= count_text(text)


def test_a_long_unit_is_cut_where_its_statements_end_under_its_signature() -> None:
    lines = [f"    first_{n}(\n        second_{n},\n    );" for n in range(60)]
    text = "function long() {\n" + "\n".join(lines) + "\n}"
    cuts = tuple(at + 2 for at in range(len(text)) if text.startswith(");", at))
    unit = Unit(0, len(text), "method", "A::long", "function long()", cuts=cuts)
    passages = cut(text, (unit,))
    assert len(passages) > 3
    assert all(p.token_count <= LIMIT for p in passages)
    assert all(text[p.start : p.end].endswith(");") for p in passages[:-1])
    assert passages[0].heading_path == ("A::long",)
    assert {p.heading_path for p in passages[1:]} == {("A::long", "function long()")}
    assert {p.definition for p in passages} == {Definition("method", "A::long", "function long()")}


@pytest.mark.parametrize("seed", range(8), ids=[f"seed{n}" for n in range(8)])
def test_every_visible_character_is_in_exactly_one_passage(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [
        (
            " ".join(f"w{chance.randrange(99)}" for _ in range(chance.randrange(1, 300))),
            chance.random() < 0.5,
        )
        for _ in range(30)
    ]
    text = "\r\n \n".join(piece for piece, _ in pieces)
    passages = cut(text, units_of(text, *pieces))
    covered = "".join(text[p.start : p.end] for p in passages)
    assert "".join(covered.split()) == "".join(text.split())
    assert all(p.start == p.new_start and p.token_count <= LIMIT for p in passages)


def test_sections_are_joined_to_the_minimum_and_split_with_an_overlap() -> None:
    small = "".join(f"## Part {n}\n\nOne short sentence.\n\n" for n in range(30))
    sentences = (f"Sentence {n} says a little more than that." for n in range(400))
    large = "## Large\n\n" + " ".join(sentences)
    parsed = parse_markdown(f"# Title\n\n{small}{large}\n")
    made = chunk_document(parsed, USUAL, parsed_digest="d", is_confined=False)
    chunks = made.chunks
    assert all(chunk.token_count <= 1200 for chunk in chunks)
    joined = [c for c in chunks if "Part" in c.text]
    assert len(joined) > 1
    assert all(200 <= c.token_count < 260 for c in joined[:-1])
    parts = [c for c in chunks if c.heading_path[-1:] == ("Large",)]
    assert len(parts) > 2
    for before, after in pairwise(parts):
        assert 100 <= count_text(parsed.text[after.start : before.end]) <= 200
    assert {chunk.definition for chunk in chunks} == {Definition("section")}


@pytest.mark.parametrize(
    "bugs",
    [
        "## Wrong sums\n\nIn `a.py`.\n\n### Cause\n\nFloats.\n\n## Slow\n\nVery.\n\n## Dark\n",
        "- Wrong sums in `a.py`,\n  by floats.\n- Slow.\n- Dark.\n",
    ],
    ids=["sections", "items"],
)
def test_each_known_bug_is_a_chunk_however_small(bugs: str) -> None:
    markdown = "text/markdown"
    parsed = replace(parse_markdown(f"# Known issues\n\n{bugs}"), media_type=markdown)
    made = chunk_document(parsed, USUAL, parsed_digest="d")
    told = [chunk for chunk in made.chunks if chunk.text != "# Known issues"]
    assert len(told) == 3
    assert "loats" in told[0].text
    assert "Slow" in told[1].text
    assert {chunk.definition.role for chunk in told} == {"section"}
    other = replace(parse_markdown(f"# Guide\n\n{bugs}"), media_type=markdown)
    assert len(chunk_document(other, USUAL, parsed_digest="d").chunks) == 1


BUGS = "# Open bugs\n\n## Wrong sums\n\nIn `a.py`.\n\n## Slow\n\nVery.\n"


@pytest.mark.parametrize(
    ("path", "chunks"),
    [
        ("docs/KNOWN_BUGS.md", ["# Open bugs", "## Wrong sums\n\nIn `a.py`.", "## Slow\n\nVery."]),
        ("packages/shop/known-issues.markdown", 3),
        ("docs/bugs.md", 1),
        ("README.md", 1),
    ],
)
def test_a_list_of_known_bugs_is_told_by_its_place_too(path: str, chunks: list[str] | int) -> None:
    parsed = replace(parse_markdown(BUGS), media_type="text/markdown")
    chosen = USUAL.adapt_to(path, "text/markdown")
    made = chunk_document(parsed, chosen, parsed_digest="d")
    texts = [chunk.text for chunk in made.chunks]
    assert (texts if isinstance(chunks, list) else len(texts)) == chunks
    # Files that are cut as before keep the keys of their chunk sets.
    former = chunk_document(parsed, USUAL, parsed_digest="d")
    assert (made.key == former.key) == (len(texts) == 1)


def test_only_markdown_is_cut_by_its_place_and_only_by_the_chunker_of_code() -> None:
    assert USUAL.adapt_to("docs/KNOWN_BUGS.txt", "text/plain") == USUAL
    heading = ChunkParameters(HEADING, 1200, 200)
    assert heading.adapt_to("docs/KNOWN_BUGS.md", "text/markdown") == heading


def test_a_text_that_was_not_read_is_kept_whole_with_a_note() -> None:
    parsed = ParsedText("<?php\n\nfoo();\n", (), media_type="text/x-php")
    made = chunk_document(parsed, USUAL, parsed_digest="d", is_confined=False)
    assert [fact.kind for fact in made.facts] == [UNREAD]
    assert [chunk.text for chunk in made.chunks] == ["<?php\n\nfoo();"]


def test_facts_have_their_lines_and_the_masked_text_of_their_evidence() -> None:
    text = "a(\n  1)\n\nb(****)\n\n" + "c" * 500
    facts = tuple(Fact("calls", text.index(n), text.index(n) + 7) for n in "ba")
    facts += (Fact("calls", text.index("c"), len(text)), Fact("declares", 0, len(text)))
    reading = replace(chunker.CODE, read=lambda _: CutText([], facts))
    parsed = ParsedText(text, (), masked=(MaskedSpan(12, 16, "x"),), media_type="text/x-php")
    made = chunk_document(parsed, ChunkParameters(reading, 1200, 200), parsed_digest="d")
    assert [(f.line_start, f.line_end, f.evidence) for f in made.facts] == [
        (1, 2, "a( 1)"),
        (1, 6, " ".join(text[:200].split())),
        (4, 4, "b(****)"),
        (6, 6, "c" * 200),
    ]


def test_a_change_of_layout_costs_no_vector() -> None:
    plain = "def one():\n    return 1\n\n\ndef two():\n    return 2"
    moved = "\r\n".join(f"    {line}  " for line in plain.split("\n"))
    assert normalize_code(moved) == normalize_code(plain)
    assert normalize_code(plain).startswith("def one():\n    return 1")
    same = {build_embedding_text(None, ("a.one",), text, is_code=True) for text in (plain, moved)}
    assert len(same) == 1
    prose = {build_embedding_text(None, ("a.one",), text) for text in (plain, moved)}
    assert len(prose) == 2


def chunks_of(path: str, media_type: str, text: str) -> list[str]:
    parameters = ChunkParameters(chunker.CODE, 1200, 200, chunker.classify_path(path, media_type))
    parsed = ParsedText(text, (), media_type=media_type)
    return [chunk.text for chunk in chunk_document(parsed, parameters, parsed_digest="d").chunks]


KEYS = "{" + ",\n".join(f'"label.number{at}": "Text of number {at}"' for at in range(100)) + "}\n"


@pytest.mark.parametrize(
    "path",
    [
        *("lang/en/auth.json", "public/intl/en-US.json"),
        *("tests/fixtures/users.json", "src/data/cities.json"),
    ],
)
def test_keys_of_data_files_are_joined(path: str) -> None:
    made = chunks_of(path, "text/x-json", KEYS)
    assert len(made) < 15
    assert all(count_text(text) >= 150 for text in made[:-1])


@pytest.mark.parametrize("path", ["config/app.json", "tsconfig.json", "web/vite.config.json"])
def test_keys_of_configuration_are_chunks_of_their_own(path: str) -> None:
    assert len(chunks_of(path, "text/x-json", KEYS)) == 100


def test_a_structured_file_of_many_keys_is_data_wherever_it_lies() -> None:
    many = "{" + ",\n".join(f'"key{at}": {at}' for at in range(1_000)) + "}\n"
    assert len(chunks_of("config/app.json", "text/x-json", many)) < 100


def test_source_code_with_a_masked_span_is_kept() -> None:
    text = "class Login\n  def check\n    key = '************'\n  end\nend\n"
    start = text.index("*")
    mask = MaskedSpan(start, start + 12, "described-sk")
    parsed = ParsedText(text, (), media_type="text/x-ruby", masked=(mask,))
    made = chunk_document(parsed, USUAL, parsed_digest="d")
    assert made.dropped == ()
    assert any("************" in chunk.text for chunk in made.chunks)


@pytest.mark.parametrize(
    ("media_type", "rule"),
    [
        ("text/x-ruby", "described-akia"),
        ("text/x-ruby", "described-rsa"),
        *((f"text/x-{name}", "described-sk") for name in ("yaml", "json", "ini", "terraform")),
    ],
)
def test_code_with_a_secret_near_its_mask_is_dropped(media_type: str, rule: str) -> None:
    secret = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY00"
    text = f"class A\n  def client\n    connect('************', '{secret}')\n  end\nend\n"
    start = text.index("*")
    mask = MaskedSpan(start, start + 12, rule)
    parsed = ParsedText(text, (), media_type=media_type, masked=(mask,))
    made = chunk_document(parsed, USUAL, parsed_digest="d")
    assert not any(secret in chunk.text for chunk in made.chunks)
    assert [dropped.rules for dropped in made.dropped] == [(rule,)]
