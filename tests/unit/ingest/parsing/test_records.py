import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.ingest.parsing import registry
from rag_assets.ingest.parsing.markdown import parse_markdown
from rag_assets.ingest.parsing.media_types import MARKDOWN, PDF
from rag_assets.ingest.parsing.model import (
    Block,
    MaskedSpan,
    ParsedText,
    compute_parsed_digest,
    from_record,
    to_record,
)
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import compute_parse_key
from rag_assets.privacy.secrets import scanner

PARSED = replace(
    parse_markdown("# A\n\ntext é🔒\n\n## B\n\n- x\n"), masked=(MaskedSpan(5, 9, "rule"),), pages=3
)


@pytest.mark.slow
@given(st.text(alphabet="# ab\n-`|é", max_size=60))
def test_a_record_gives_back_what_it_was_made_of(text: str) -> None:
    parsed = parse_markdown(text)
    assert from_record(json.loads(json.dumps(to_record(parsed)))) == parsed


def test_a_digest_is_of_everything() -> None:
    blocks = PARSED.blocks
    others = [
        replace(PARSED, text=PARSED.text + " "),
        replace(PARSED, title="B"),
        replace(PARSED, pages=None),
        replace(PARSED, masked=()),
        replace(PARSED, blocks=blocks[:-1]),
        replace(PARSED, ocr_pages=1),
        replace(PARSED, has_lines=False),
        replace(PARSED, media_type=PDF),
        replace(PARSED, notes=("1 of 3 pages",)),
        replace(PARSED, blocks=(replace(blocks[0], page=1), *blocks[1:])),
        replace(PARSED, blocks=(replace(blocks[0], slide=1), *blocks[1:])),
        replace(PARSED, blocks=(replace(blocks[0], sheet="1"), *blocks[1:])),
        replace(PARSED, blocks=(replace(blocks[0], row=1), *blocks[1:])),
        replace(PARSED, blocks=(replace(blocks[0], level=2), *blocks[1:])),
        replace(PARSED, blocks=(replace(blocks[0], heading_path=("C",)), *blocks[1:])),
    ]
    digests = {compute_parsed_digest(parsed) for parsed in [PARSED, *others]}
    assert len(digests) == len(others) + 1
    assert compute_parsed_digest(from_record(to_record(PARSED))) == compute_parsed_digest(PARSED)


@pytest.mark.slow
def test_a_key_depends_on_all_that_determines_the_text(monkeypatch: object) -> None:
    keys = {
        compute_parse_key("a" * 64, MARKDOWN),
        compute_parse_key("b" * 64, MARKDOWN),
        compute_parse_key("a" * 64, PDF),
        compute_parse_key("a" * 64, PDF, ParseOptions(keep_headers_footers=True)),
        compute_parse_key("a" * 64, PDF, ParseOptions(ocr=True)),
        compute_parse_key("a" * 64, PDF, ParseOptions(ocr=True, ocr_languages=("deu",))),
        compute_parse_key("a" * 64, PDF, ParseOptions(passwords=("a",))),
        compute_parse_key("a" * 64, PDF, ParseOptions(passwords=("b",))),
        compute_parse_key("a" * 64, PDF, ParseOptions(pdf="docling", docling_models="a")),
        compute_parse_key("a" * 64, PDF, ParseOptions(pdf="docling", docling_models="b")),
    }
    assert len(keys) == 10
    # Models that nothing reads do not matter either.
    assert compute_parse_key("a" * 64, PDF, ParseOptions(docling_models="a")) in keys
    # What OCR would do does not matter while it is off.
    assert compute_parse_key("a" * 64, PDF, ParseOptions(ocr_languages=("deu",))) in keys
    # A default that is spelled out changes nothing.
    assert compute_parse_key("a" * 64, PDF, ParseOptions(keep_headers_footers=False)) in keys


def test_a_key_changes_with_the_parser_and_not_with_the_rules(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def key() -> str:
        registry.compute_parsers_version.cache_clear()
        return compute_parse_key("a" * 64, MARKDOWN)

    before = key()
    with monkeypatch.context() as patch:
        patch.setattr(scanner, "RULES_VERSION", scanner.RULES_VERSION + 1)
        scanner.rules_version.cache_clear()
        assert key() == before
    scanner.rules_version.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(registry, "_get_package_version", lambda _package: "99.0")
        assert key() != before
    assert key() == before


def test_paths_are_listed_once() -> None:
    long_path = ("x" * 300, "y" * 300)
    blocks = tuple(Block("paragraph", i, i + 1, long_path) for i in range(1000))
    assert len(json.dumps(to_record(ParsedText("a" * 1000, blocks)))) < 60_000
