from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.boundaries import find_list_cuts
from rag_assets.ingest.chunking.chunk_set import chunk_document, from_record, to_record
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import Passage, build_chunk_record, parse_chunk
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.registry import parse
from tests.chunking import parameters_of, passages_of

from .documents import documents, parsed_from, prose, with_masks
from .promises import check_promises, quick

SMALL = parameters_of("heading", 128, 20)
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
        SMALL,
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
    parsed = parsed_from(
        [("paragraph", "Washers in the store"), ("table", f"Article | Name | State\n{rows}")]
    )
    parts = passages_of(parsed, SMALL)
    assert {part.context for part in parts[1:]} == {"Washers in the store\nArticle | Name | State"}


def test_the_first_row_is_repeated_only_if_it_names_columns() -> None:
    rows = "\n".join(f"{n} | {n * n} | {n / 7:.3f}" for n in range(90))
    parts = passages_of(parsed_from([("table", rows)]), SMALL)
    assert {part.context for part in parts} == {""}


def test_a_row_over_the_limit_is_cut_at_its_cells_below_header_and_first_cell() -> None:
    cells = " | ".join(f"the remark number {n} about it" for n in range(80))
    parsed = markdown(f"| Key | Remarks |\n|---|---|\n| PX-1 | {cells} |\n")
    parts = passages_of(parsed, SMALL)
    assert len(parts) > 3
    for part in parts[2:]:
        assert part.context == "| Key | Remarks |\nPX-1"
        assert parsed.text[part.new_start :].startswith("the remark number")


def test_items_that_continue_a_list_have_its_lead_and_the_items_above_them() -> None:
    steps = "\n".join(f"   - turn the valve number {n} a quarter" for n in range(40))
    parsed = markdown(
        f"Wear gloves. Close the pump in these steps:\n\n1. On the left side\n{steps}\n"
    )
    parts = passages_of(parsed, SMALL)
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


def test_code_is_cut_before_the_statement_that_is_indented_least() -> None:
    parts = [f"void f{n}() {{\n  one({n});\n\n  two({n});\n}}\n" for n in range(30)]
    parsed = markdown("```c\n" + "\n".join(parts) + "```\n")
    passages = passages_of(parsed, parameters_of("heading", 100, 0))
    assert len(passages) > 5
    assert all(parsed.text[passage.start :].startswith("void f") for passage in passages[1:])


def test_a_comment_stays_with_the_statement_below_it() -> None:
    statements = "\n".join(f"# about step {n}\nrun --step {n} --all" for n in range(60))
    parsed = markdown(f"```sh\n{statements}\n```\n")
    passages = passages_of(parsed, parameters_of("heading", 100, 0))
    assert len(passages) > 5
    assert all(parsed.text[passage.start :].startswith("# about") for passage in passages[1:])


def test_a_long_header_leaves_three_quarters_to_the_rows() -> None:
    names = " | ".join(f"the column number {n}" for n in range(60))
    rows = "\n".join(f"| {n} | b |" for n in range(200))
    parsed = markdown(f"| {names} |\n|---|---|\n{rows}\n")
    parts = check_promises(parsed, SMALL)
    contexts = {part.context for part in parts if part.context}
    assert contexts
    assert all(count_text(context) <= 32 for context in contexts)
    assert all(context.startswith("| the column number 0 |") for context in contexts)


def test_a_masked_header_is_not_repeated() -> None:
    parsed = with_masks(markdown(f"{TABLE}\n"), ("Place", "aws-secret"))
    assert {part.context for part in passages_of(parsed, SMALL)} == {""}


def test_prose_has_no_context() -> None:
    parsed = parsed_from([("heading", "# One"), ("paragraph", prose(200))])
    assert {part.context for part in passages_of(parsed, SMALL)} == {""}


def test_a_context_is_embedded_stored_and_part_of_the_digest() -> None:
    parsed = markdown(f"{TABLE}\n")
    made = chunk_document(parsed, SMALL, parsed_digest="d")
    chunk = made.chunks[1]
    assert chunk.context == HEADER
    assert chunk.build_embedding_text(None) == f"{HEADER}\n{chunk.text}"
    assert chunk.text == parsed.text[chunk.start : chunk.end]
    assert parse_chunk(build_chunk_record(chunk)) == chunk
    assert from_record(to_record(made), parsed.text) == made
    other = chunk_document(
        replace(parsed, text=parsed.text.replace("Place", "Shelf")), SMALL, parsed_digest="d"
    )
    assert other.chunks[1].text_sha256 != chunk.text_sha256
    assert other.digest != made.digest


@pytest.mark.slow
@quick
@given(documents())
def test_no_block_is_cut_that_fits_with_the_headings_above_it(parsed: ParsedText) -> None:
    passages = passages_of(parsed, SMALL)
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
