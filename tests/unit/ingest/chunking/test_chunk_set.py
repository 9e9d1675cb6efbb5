import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.boundaries import find_list_cuts
from rag_assets.ingest.chunking.chunk_set import (
    CHUNKER_VERSION,
    DROPPING_VERSION,
    ChunkSet,
    chunk_document,
    compute_chunk_set_key,
    from_record,
    to_record,
)
from rag_assets.ingest.chunking.chunkers import CHUNKERS, build_chunk_parameters
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkParameters, ChunkRequest
from rag_assets.ingest.chunking.model import (
    Passage,
    build_chunk_record,
    build_chunks,
    compute_text_hash,
    parse_chunk,
)
from rag_assets.ingest.parsing import languages
from rag_assets.ingest.parsing.model import Block, BlockKind, MaskedSpan, ParsedText
from rag_assets.ingest.parsing.registry import parse
from tests.chunking import parameters_of, passages_of

from .documents import documents, parsed_from, prose, with_masks
from .promises import check_promises, quick, texts

SMALL = parameters_of("heading", 64, 16)


def chunked(parsed: ParsedText, parameters: ChunkParameters = SMALL) -> ChunkSet:
    return chunk_document(parsed, parameters, parsed_digest="d")


def test_a_credential_is_masked_and_its_passage_kept() -> None:
    text = prose(4) + " Key k3y-42. " + prose(3)
    parsed = with_masks(parsed_from([("paragraph", text)]), ("k3y-42", "generic-key"))
    made = chunked(parsed, parameters_of("heading", 256, 16))
    (chunk,) = made.chunks
    assert "Key ******." in chunk.text
    assert chunk.text == parsed.text.strip()
    assert made.dropped == ()


def test_a_chunk_of_masked_characters_alone_is_dropped() -> None:
    parsed = with_masks(parsed_from([("paragraph", "k3y-42")]), ("k3y-42", "generic-key"))
    made = chunked(parsed)
    assert made.chunks == ()
    assert [dropped.rules for dropped in made.dropped] == [("generic-key",)]


def test_only_the_chunk_around_a_described_pattern_is_dropped() -> None:
    text = prose(12) + " Key k3y-42. " + prose(9)
    setup = parsed_from([("heading", "# Setup"), ("paragraph", text)])
    parsed = with_masks(setup, ("k3y-42", "described-sk"))
    made = chunked(parsed)
    (dropped,) = made.dropped
    assert dropped.rules == ("described-sk",)
    assert parsed.text[dropped.start : dropped.end] == "Key ******."
    assert [chunk.ordinal for chunk in made.chunks] == list(range(len(made.chunks)))
    kept = " ".join(chunk.text for chunk in made.chunks)
    assert prose(12)[-60:] in kept
    assert prose(9)[:60] in kept
    assert "*" not in kept
    first_after = next(c for c in made.chunks if c.start > dropped.start)
    assert dropped.ordinal == first_after.ordinal


def test_a_credential_over_many_lines_names_each_rule_once() -> None:
    block = "\n".join(["-----BEGIN KEY-----", *["A" * 60] * 30, "-----END KEY-----"])
    parsed = parsed_from([("paragraph", "Before."), ("code", block), ("paragraph", "After.")])
    start = parsed.text.index("-----BEGIN")
    half = start + len(block) // 2
    spans = (MaskedSpan(start, half, "pem"), MaskedSpan(half, start + len(block), "described-rsa"))
    made = chunked(replace(parsed, masked=spans))
    assert [chunk.text for chunk in made.chunks if "." in chunk.text][-1] == "After."
    assert {rule for dropped in made.dropped for rule in dropped.rules} >= {"described-rsa"}
    assert all(list(d.rules) == sorted(set(d.rules)) for d in made.dropped)


@settings(max_examples=40)
@given(documents())
def test_a_chunk_survives_json(parsed: ParsedText) -> None:
    for chunk in chunked(parsed).chunks:
        assert parse_chunk(json.loads(json.dumps(build_chunk_record(chunk)))) == chunk


def test_facts_are_part_of_a_chunk_and_of_no_other_chunks_digest() -> None:
    parsed = parsed_from([("paragraph", "def pump(): ...")])
    plain = chunked(parsed)

    def split(request: ChunkRequest) -> list[Passage]:
        return [replace(p, facts={"symbol": request.kind}) for p in SMALL.kind.split(request)]

    symbols = ChunkerKind("heading", "with facts", split, unit="tokens", limit=64)
    known = chunked(replace(parsed, media_type="code"), ChunkParameters(symbols, 64, 16))
    assert [chunk.facts for chunk in known.chunks] == [{"symbol": "code"}]
    assert "facts" not in build_chunk_record(plain.chunks[0])
    assert parse_chunk(build_chunk_record(known.chunks[0])) == known.chunks[0]
    assert known.digest != plain.digest


MANUAL = "# Pumps\n\nThe pump runs. It stops.\n\n| a | b |\n| 1 | 2 |\n\n## Valves\n\n" + (
    "The valve opens at 4 bar. " * 60
)
ROW, SECOND, PROSE = map(MANUAL.index, ("| 1", "## V", "The valve"))
STORED = {
    "heading": ("577b620c18adde9317a9e200626362de", "296937f609221f57eaedb2c6a772087e", 12),
    "recursive": ("2a99e738286f1770f5f71223805f251e", "9159e0236c1929b10d58d7712ad61ec9", 12),
    "sentence": ("5946b35149c9dc99bcaa0991e5e483ae", "aeb5e28efe00e45eea35f0027077d5ef", 22),
    "record": ("757d5caf12e2a5ff772a66be6d1f3ebf", "b7b87d1c9e357730fd1d7e1ea587c0b0", 11),
}


@pytest.mark.parametrize("chunker", STORED)
def test_what_is_stored_is_not_cut_again(chunker: str) -> None:
    """Keys, digests and numbers equal those in the lakes of these versions."""
    assert (CHUNKER_VERSION, DROPPING_VERSION) == (2, 2)
    parsed = ParsedText(
        MANUAL,
        (
            Block("heading", 0, 7, ("Pumps",), 1, page=1),
            Block("paragraph", 9, 33, ("Pumps",), page=1),
            Block("row", ROW, ROW + 9, ("Pumps",), page=2, sheet="S", row=2),
            Block("heading", SECOND, SECOND + 9, ("Pumps", "Valves"), 2, page=3),
            Block("paragraph", PROSE, len(MANUAL), ("Pumps", "Valves"), page=3),
        ),
        title="Manual",
        has_lines=True,
        media_type="text/markdown",
        masked=(MaskedSpan(20, 23, "described-sk"),),
    )
    limit = {"max_characters": 100} if chunker == "sentence" else {"max_tokens": 64}
    made = chunk_document(parsed, build_chunk_parameters(chunker, **limit), parsed_digest="parsed")
    assert (made.key, made.digest, len(made.chunks)) == STORED[chunker]


def test_the_hash_covers_title_and_headings() -> None:
    parsed = parsed_from([("heading", "# H"), ("paragraph", "Text.")], title="T")
    (chunk,) = chunked(parsed).chunks
    assert chunk.text_sha256 == compute_text_hash("T", ("H",), "# H\n\nText.")


def test_the_key_depends_on_all_that_decides_the_chunks() -> None:
    keys = {
        compute_chunk_set_key("a", "text/plain", SMALL),
        compute_chunk_set_key("b", "text/plain", SMALL),
        compute_chunk_set_key("a", "text/markdown", SMALL),
        compute_chunk_set_key("a", "text/plain", replace(SMALL, limit=65)),
        compute_chunk_set_key("a", "text/plain", replace(SMALL, overlap=15)),
        compute_chunk_set_key("a", "text/plain", replace(SMALL, kind=CHUNKERS["recursive"])),
    }
    assert len(keys) == 6
    # What is in the lake already stays where it is.
    assert compute_chunk_set_key("a", "text/x-go", SMALL) == "9bfc0091424da6d74f7fe649b52b0b18"
    assert chunked(parsed_from([])).key == compute_chunk_set_key("d", "", SMALL)


def test_another_language_detector_has_prose_chunked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    types = ("text/plain", "text/x-go")
    before = [compute_chunk_set_key("a", media_type, SMALL) for media_type in types]
    monkeypatch.setattr(languages, "get_detector_version", lambda: "another")
    after = [compute_chunk_set_key("a", media_type, SMALL) for media_type in types]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True]


def test_the_digest_is_of_the_chunks_and_not_of_what_made_them() -> None:
    parsed = parsed_from([("heading", "# H"), ("paragraph", "One two.")])
    base = chunked(parsed)
    wider = chunked(parsed, parameters_of("heading", 128, 16))
    assert wider.key != base.key
    assert wider.digest == base.digest
    parts = [("front_matter", "---\na: 1\n---"), ("heading", "# H"), ("paragraph", "One two.")]
    shifted = parsed_from(parts)  # type: ignore[arg-type]
    others = [
        replace(parsed, title="T"),
        replace(parsed, text=parsed.text.replace("two", "six")),
        parsed_from([("heading", "# H"), ("paragraph", "One two.")], pages=True),
        shifted,
        parsed_from([]),
    ]
    digests = {chunked(other).digest for other in others}
    assert len(digests | {base.digest}) == 6


MEDIUM = parameters_of("heading", 128, 20)
HEADER = "| Article | Place | State |"
ROWS = [f"| PX-{n:04} | shelf {n} | in stock |" for n in range(60)]
TABLE = "\n".join([HEADER, "|---|---|---|", *ROWS])


def markdown(text: str) -> ParsedText:
    return parse(text.encode(), "text/markdown")


def shown(parsed: ParsedText, passage: Passage) -> str:
    text = parsed.text[passage.start : passage.end]
    return f"{passage.context}\n{text}" if passage.context else text


@pytest.mark.parametrize(
    "chosen",
    [
        MEDIUM,
        parameters_of("recursive", 128, 20),
        parameters_of("sentence", 500, 60),
        parameters_of("record", 128, 0),
        parameters_of("page", 128, 20),
    ],
)
def test_each_part_of_a_table_begins_with_its_header_and_at_a_row(chosen: ChunkParameters) -> None:
    parsed = markdown(f"# Parts\n\n{TABLE}\n\nThe end.\n")
    parts = passages_of(parsed, chosen)
    assert len(parts) > 4
    for part in parts[1:]:
        first, second, *_ = shown(parsed, part).splitlines()
        if second in ROWS:
            assert first == HEADER
    assert all(part.context == HEADER for part in parts[1:-1])
    assert all(parsed.text[part.start - 1] == "\n" for part in parts[1:])


def test_a_table_without_pipes_around_it_keeps_its_caption_and_the_names_of_its_columns() -> None:
    rows = "\n".join(f"DX-{n:04} | washer size {n} | in stock" for n in range(60))
    table = f"Article | Name | State\n{rows}"
    parsed = parsed_from([("paragraph", "Washers in the store"), ("table", table)])
    parts = passages_of(parsed, MEDIUM)
    assert {part.context for part in parts[1:]} == {"Washers in the store\nArticle | Name | State"}


NUMBERS = "\n".join(f"{n} | {n * n} | {n / 7:.3f}" for n in range(90))


@pytest.mark.parametrize(
    "parsed",
    [
        pytest.param(parsed_from([("table", NUMBERS)]), id="a first row that names no columns"),
        pytest.param(
            with_masks(markdown(f"{TABLE}\n"), ("Place", "aws-secret")), id="a masked header"
        ),
        pytest.param(parsed_from([("heading", "# One"), ("paragraph", prose(200))]), id="prose"),
    ],
)
def test_what_has_no_header_to_repeat_has_no_context(parsed: ParsedText) -> None:
    assert {part.context for part in passages_of(parsed, MEDIUM)} == {""}


def test_a_row_over_the_limit_is_cut_at_its_cells_below_header_and_first_cell() -> None:
    cells = " | ".join(f"the remark number {n} about it" for n in range(80))
    parsed = markdown(f"| Key | Remarks |\n|---|---|\n| PX-1 | {cells} |\n")
    parts = passages_of(parsed, MEDIUM)
    assert len(parts) > 3
    for part in parts[2:]:
        assert part.context == "| Key | Remarks |\nPX-1"
        assert parsed.text[part.new_start :].startswith("the remark number")


def test_items_that_continue_a_list_have_its_lead_and_the_items_above_them() -> None:
    steps = "\n".join(f"   - turn the valve number {n} a quarter" for n in range(40))
    lead = "Wear gloves. Close the pump in these steps:"
    parsed = markdown(f"{lead}\n\n1. On the left side\n{steps}\n")
    parts = passages_of(parsed, MEDIUM)
    assert len(parts) > 3
    for part in parts[2:]:
        assert part.context == "Close the pump in these steps:\n1. On the left side"


def test_code_that_continues_has_its_language_and_the_lines_that_enclose_it() -> None:
    body = "\n".join(
        f"        if self.pressure > {n}:\n            self.open({n})" for n in range(60)
    )
    parsed = markdown(f"```python\nclass Valve:\n    def check(self):\n{body}\n```\n")
    parts = passages_of(parsed, parameters_of("heading", 160, 0))
    assert len(parts) > 5
    for part in parts[1:-1]:
        assert part.context.splitlines() == ["```python", "class Valve:", "def check(self):"]
        assert parsed.text[part.start :].startswith("if self.pressure")


@pytest.mark.parametrize(
    ("statements", "first"),
    [
        ([f"void f{n}() {{\n  one({n});\n\n  two({n});\n}}\n" for n in range(30)], "void f"),
        ([f"# about step {n}\nrun --step {n} --all" for n in range(60)], "# about"),
    ],
    ids=["the statement that is indented least", "the comment above a statement"],
)
def test_code_is_cut_before(statements: list[str], first: str) -> None:
    parsed = markdown("```sh\n" + "\n".join(statements) + "\n```\n")
    passages = passages_of(parsed, parameters_of("heading", 100, 0))
    assert len(passages) > 5
    assert all(parsed.text[passage.start :].startswith(first) for passage in passages[1:])


def test_a_long_header_leaves_three_quarters_to_the_rows() -> None:
    names = " | ".join(f"the column number {n}" for n in range(60))
    rows = "\n".join(f"| {n} | b |" for n in range(200))
    parsed = markdown(f"| {names} |\n|---|---|\n{rows}\n")
    parts = check_promises(parsed, MEDIUM)
    contexts = {part.context for part in parts if part.context}
    assert contexts
    assert all(count_text(context) <= 32 for context in contexts)
    assert all(context.startswith("| the column number 0 |") for context in contexts)


def test_a_context_is_embedded_stored_and_part_of_the_digest() -> None:
    parsed = markdown(f"{TABLE}\n")
    made = chunk_document(parsed, MEDIUM, parsed_digest="d")
    chunk = made.chunks[1]
    assert chunk.context == HEADER
    assert chunk.build_embedding_text(None) == f"{HEADER}\n{chunk.text}"
    assert chunk.text == parsed.text[chunk.start : chunk.end]
    assert parse_chunk(build_chunk_record(chunk)) == chunk
    assert from_record(to_record(made), parsed.text) == made
    other = chunk_document(
        replace(parsed, text=parsed.text.replace("Place", "Shelf")), MEDIUM, parsed_digest="d"
    )
    assert other.chunks[1].text_sha256 != chunk.text_sha256
    assert other.digest != made.digest


@pytest.mark.slow
@quick
@given(documents())
def test_no_block_is_cut_that_fits_with_the_headings_above_it(parsed: ParsedText) -> None:
    passages = passages_of(parsed, MEDIUM)
    headings: int | None = None
    for block in parsed.blocks:
        if block.kind == "heading":
            headings = block.start if headings is None else headings
            continue
        start, headings = headings if headings is not None else block.start, None
        if block.kind != "front_matter" and count_text(parsed.text[start : block.end]) < 120:
            assert any(p.start <= block.start and block.end <= p.end for p in passages)


def test_a_long_run_of_blanks_in_a_list_is_cut_in_linear_time() -> None:
    text = "- a `x" + " " * 1_000_000 + "y` b\n- c\n"
    assert [place for place, _ in find_list_cuts(text, 0, len(text))] == [text.index("- c")]


SHEET: list[tuple[BlockKind, str]] = [
    ("heading", "# Services"),
    ("heading", "## name | port"),
    *(("row", f"service {n} | {8000 + n}") for n in range(4)),
    ("paragraph", "A note below the table."),
    ("heading", "# Owners"),
    ("row", "service 0 | platform"),
]


def split(parsed: ParsedText, max_tokens: int = 64) -> list[Passage]:
    return passages_of(parsed, parameters_of("record", max_tokens, 0))


def test_every_row_is_a_passage_with_the_headings_above_it() -> None:
    parsed = parsed_from(SHEET, pages=True)
    passages = split(parsed)
    assert texts(parsed, passages) == [
        "# Services\n\n## name | port\n\nservice 0 | 8000",
        *(f"service {n} | {8000 + n}" for n in (1, 2, 3)),
        "A note below the table.",
        "# Owners\n\nservice 0 | platform",
    ]
    assert [p.heading_path for p in passages[:5]] == [("Services", "name | port")] * 5
    places = [chunk.location for chunk in build_chunks(parsed, passages)]
    rows = [(place.row_start, place.row_end) for place in places]
    assert rows == [(3, 3), (4, 4), (5, 5), (6, 6), (None, None), (9, 9)]


def test_a_row_over_the_limit_is_cut_between_its_lines() -> None:
    fields = [f"a line of the cell number {n}" for n in range(20)]
    parsed = parsed_from([("row", "\n".join(fields)), ("row", "short")])
    passages = split(parsed)
    assert len(passages) > 2
    assert texts(parsed, passages)[-1] == "short"
    for text in texts(parsed, passages)[:-1]:
        assert set(text.split("\n")) <= set(fields)


def test_a_document_without_rows_is_one_entry_if_it_fits() -> None:
    parsed = parsed_from(
        [("heading", "# A"), ("paragraph", prose(2)), ("heading", "# B"), ("paragraph", prose(2))]
    )
    assert [(p.start, p.heading_path) for p in split(parsed)] == [(0, ())]
    assert [p.heading_path for p in split(parsed, 32)] == [("A",), ("B",)]


def test_only_the_row_with_a_credential_is_dropped() -> None:
    parsed = with_masks(parsed_from(SHEET), ("service 2", "rule"))
    made = chunk_document(parsed, parameters_of("record", 64, 0), parsed_digest="d")
    [dropped] = made.dropped
    assert parsed.text[dropped.start : dropped.end] == "********* | 8002"
    assert len(made.chunks) == 5
