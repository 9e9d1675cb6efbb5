"""Damaged documents of every format: each yields a valid text or a reason, and nothing worse.

`make fuzz` tries more documents, and different ones each time.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.chunkers import build_chunk_parameters
from rag_assets.ingest.parsing.model import ParsedText, from_record, to_record
from rag_assets.ingest.parsing.options import ParseLimits
from rag_assets.ingest.parsing.registry import PARSERS
from rag_assets.ingest.workers.pool import ParseTask, WorkerPool
from rag_assets.tenants.kinds import installed_kinds
from tests.unit.ingest.chunking.promises import check_promises
from tests.unit.ingest.parsing import mutations
from tests.unit.ingest.parsing.mutations import Edit, edited, edited_tree, parts
from tests.unit.ingest.parsing.office_files import with_part
from tests.unit.ingest.parsing.seeds import MARKER, handbook, seeds

EXAMPLES = int(os.environ.get("RAG_ASSETS_FUZZ_EXAMPLES", "0"))
IDS = sorted({parser.id for parser in PARSERS.values()})
ZIPPED = [name for name in IDS if name.startswith("office.")]
TEXTS = [name for name in IDS if name.startswith(("text.", "web."))]
MOSTLY = st.sampled_from([True, True, True, False])
# A tenth of the usual time and memory would do for documents of a few kilobytes.
LIMITS = ParseLimits(seconds=20, memory_bytes=512 * 1024**2, characters=1_000_000, pages=200)
VAGUE = ("the parser of the document failed", "the parser of the document crashed")

fuzz = settings(
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    database=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def fuzzed(cache_dir: Path) -> Iterator[WorkerPool]:
    with WorkerPool(1, LIMITS, cache_dir) as pool:
        yield pool


@pytest.mark.slow
def test_every_parser_has_a_seed_that_it_reads(fuzzed: WorkerPool) -> None:
    assert sorted(seeds()) == IDS
    for parser, documents in seeds().items():
        for seed in documents:
            assert PARSERS[seed.media_type].id == parser
            parsed = outcome(fuzzed, seed.data, seed.media_type)
            assert isinstance(parsed, ParsedText)
            assert parsed.media_type == seed.media_type
            assert MARKER in parsed.text


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize("parser", IDS)
@fuzz
@given(data=st.data(), changes=mutations.edits)
@pytest.mark.long
def test_damaged_documents(
    fuzzed: WorkerPool, parser: str, data: st.DataObject, changes: list[Edit]
) -> None:
    seed = data.draw(st.sampled_from([*seeds()[parser], *handbook(parser)]))
    if parser in ZIPPED and data.draw(MOSTLY):
        part = data.draw(st.sampled_from(parts(seed.data)))
        edit = edited_tree if data.draw(MOSTLY) else edited
        document = with_part(seed.data, part, lambda content: edit(content, changes))
    else:
        document = edited(seed.data, changes)
    if parser in TEXTS and data.draw(MOSTLY):
        document = document.decode(errors="ignore").replace("\0", "").encode()
    check(fuzzed, document, seed.media_type)


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize("parser", TEXTS)
@fuzz
@given(data=st.data())
def test_any_text(fuzzed: WorkerPool, parser: str, data: st.DataObject) -> None:
    seed = data.draw(st.sampled_from(seeds()[parser]))
    words = [*seed.data.decode().split(), *"\n \t\r\u2028\x0c\u00a0\u0301", "\n\n", "\r\n", "    "]
    text = "".join(data.draw(st.lists(st.sampled_from(words) | st.text(max_size=8), max_size=60)))
    check(fuzzed, text.encode(), seed.media_type)


def check(pool: WorkerPool, document: bytes, media_type: str) -> None:
    """Parse and chunk a document, check the result, and parse another one."""
    result = outcome(pool, document, media_type)
    event("read" if isinstance(result, ParsedText) else "refused")
    if isinstance(result, ParsedText):
        check_parsed(result)
        for chunker in installed_kinds().chunkers:
            check_chunks(result, chunker)
    else:
        said = f"{result.message} {result.hint}"
        assert MARKER.lower() not in said.lower()
        assert said.isprintable()
        assert not result.message.startswith(VAGUE), result.message
    assert isinstance(outcome(pool, b"# Next", None), ParsedText)


def outcome(
    pool: WorkerPool, document: bytes, media_type: str | None
) -> ParsedText | DocumentRejected:
    [made] = pool.map([ParseTask("key", "name", media_type, lambda: document)])
    assert isinstance(made.result, ParsedText | DocumentRejected)
    return made.result


def check_parsed(parsed: ParsedText) -> None:
    """Check a parsed text against the documentation of model.ParsedText."""
    record = to_record(parsed)
    stored = json.dumps(record, ensure_ascii=False, allow_nan=False)
    stored.encode()
    assert "\\u0000" not in stored
    assert from_record(json.loads(stored)) == parsed
    assert parsed.text.strip()
    assert len(parsed.text) <= LIMITS.characters
    assert parsed.title is None or parsed.title.strip()
    at = 0
    for block in parsed.blocks:
        assert at <= block.start < block.end <= len(parsed.text), asdict(block)
        assert not parsed.text[at : block.start].strip()
        assert bool(block.level) is (block.kind == "heading")
        assert 0 <= block.level <= 6
        assert not block.level or block.heading_path
        assert all(n is None or n >= 1 for n in (block.page, block.slide, block.row))
        at = block.end
    assert not parsed.text[at:].strip()
    assert all(a.end <= b.start for a, b in pairwise(parsed.masked))


def check_chunks(parsed: ParsedText, chunker: str) -> None:
    parameters = build_chunk_parameters(chunker, chunkers=installed_kinds().chunkers)
    passages = check_promises(parsed, parameters)
    made = chunk_document(parsed, parameters, parsed_digest="d")
    assert len(made.chunks) + len(made.dropped) == len(passages)
    for chunk in made.chunks:
        written = asdict(replace(chunk, facts={})) | {"facts": dict(chunk.facts)}
        json.dumps(written, ensure_ascii=False, allow_nan=False).encode()
