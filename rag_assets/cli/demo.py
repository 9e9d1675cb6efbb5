"""The demo: index the example handbook, print the result of each stage, check it, search it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

from rag_assets.cli.arguments import Json
from rag_assets.cli.output import format_seconds, print_json, print_table, progress, say
from rag_assets.cli.quality import print_checks, run_checks
from rag_assets.cli.search import format_headline, print_hit
from rag_assets.cli.session import TEMPLATES, Session, with_session
from rag_assets.cli.sync import TenantSync, sync_tenant
from rag_assets.common.formatting import format_count
from rag_assets.ingest.parsing.media_types import PPTX, XLSX
from rag_assets.search import Retriever
from rag_assets.search.hits import build_excerpt
from rag_assets.search.model import Hit, SearchRequest
from rag_assets.tenants.file import TenantsFile, format_path

if TYPE_CHECKING:
    from rag_assets.ingest.parsing.model import ParsedText
    from rag_assets.pipeline.context import TenantContext
    from rag_assets.storage.catalog.builds.generations import Generation
    from rag_assets.storage.catalog.documents.model import Document
    from rag_assets.storage.lake.model import ChunkSetRow

TENANT = "demo"
SETTINGS = {
    "profile": "documents",
    "parser": {"ocr": True},
    "chunkers": [
        {"formats": ["txt"], "chunker": "sentence", "max_characters": 800, "overlap": 100},
        {"formats": ["py", "sql"], "chunker": "recursive", "max_tokens": 220, "overlap": 32},
    ],
}
"""Settings as in the project's tenants.yaml, with OCR for the scanned page of the handbook."""
INCLUDE = ["*.*", "!.*"]
"""Patterns of files to index; they include source code, which the default patterns leave out."""
_EXAMPLES = TEMPLATES / "examples"
_TOP_K = 3
_LINE_CHARACTERS = 80
_PART_NAMES = {PPTX: "slide", XLSX: "sheet"}
_BARS = "▁▂▃▄▅▆▇█"
_HISTOGRAM_BARS = 16

app = typer.Typer()


@app.command()
@with_session
def demo(session: Session, *, as_json: Json = False) -> bool:
    """Index the example handbook, check it, and search it with three questions."""
    started = monotonic()
    session.prepare_home()
    _print_headline("1. Servers", as_json=as_json)
    session.stack.start_servers(for_dagster=False, progress=progress)
    _add_tenant(session)
    _print_headline("2. Index examples/handbook", as_json=as_json)
    synced = sync_tenant(session, TENANT)
    if synced.error is not None:
        raise synced.error
    if not as_json:
        _print_stages(session, synced)
    passed, checks = _run_checks(session, synced, as_json=as_json)
    _print_headline("4. Three questions", as_json=as_json)
    answers = _search_questions(session, as_json=as_json)
    if as_json:
        print_json(
            {
                "sync": synced.as_json(),
                "passed": passed,
                "checks": checks,
                "answers": answers,
                "seconds": round(monotonic() - started, 3),
            }
        )
    else:
        _print_next_steps(monotonic() - started, has_done_nothing=synced.nothing_to_do)
    return passed and all(answer["hits"] for answer in answers)


def _add_tenant(session: Session) -> None:
    folder = session.settings.home / "examples" / "handbook"
    if not folder.exists():
        # Package installers compile the Python file that is one of the documents.
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(_EXAMPLES / "handbook", folder, ignore=ignored)
    file = TenantsFile(session.settings.tenants_file)
    if TENANT not in file.load():
        root = format_path(folder, session.settings.home)
        source = {"name": "handbook", "type": "files", "root": root, "include": INCLUDE}
        file.add({"id": TENANT, **SETTINGS, "sources": [source]})


def _print_stages(session: Session, synced: TenantSync) -> None:
    """Print a table of the documents, and the result of each stage, also from earlier runs."""
    if synced.nothing_to_do:
        say(f"Nothing changed, nothing to do ({format_seconds(synced.seconds)}). The tenant has:\n")
    else:
        say(f"{format_count(len(synced.runs), 'run')}, {format_seconds(synced.seconds)}\n")
    summaries = summarize_documents(session.build_reader_context(TENANT))
    print_table(
        ["type", "documents", "size", "contents", "chunker", "chunks", "tokens per chunk"],
        count_by_type(summaries),
    )
    say()
    serving = session.catalog.generations.serving(TENANT)
    lines = describe_stages(summaries, serving, session.store.indexes.view_name(TENANT))
    took = {name: format_seconds(counts["seconds"]) for name, counts in synced.stages.items()}
    rows = [
        (name if at == 0 else "", line, took.get(name, "") if at == 0 else "")
        for name, stage_lines in lines.items()
        for at, line in enumerate(stage_lines)
    ]
    print_table(["stage", "result", "time"], rows)


def _run_checks(session: Session, synced: TenantSync, *, as_json: bool) -> tuple[bool, list[Any]]:
    _print_headline("3. Check it", as_json=as_json)
    if synced.nothing_to_do:
        if not as_json:
            say("Nothing changed since the last check. Check again with: rag-assets check demo")
        return True, []
    checks = run_checks(session, TENANT)
    if not as_json:
        print_checks(TENANT, checks)
    return all(check.passed or check.severity != "ERROR" for check in checks), list(checks)


def _search_questions(session: Session, *, as_json: bool) -> list[dict[str, Any]]:
    answers = []
    with closing(Retriever(session.catalog, session.store, session.embedders)) as retriever:
        for judged in _list_questions():
            question = str(judged["question"])
            result = retriever.search(TENANT, SearchRequest(query=question, top_k=_TOP_K))
            answers.append({"question": question, "hits": result.hits})
            if not as_json:
                _print_hits(question, str(judged["answer"]), result.hits)
    return answers


def _list_questions() -> list[dict[str, Any]]:
    from ruamel.yaml import YAML

    judged = YAML(typ="safe").load((_EXAMPLES / "questions.yaml").read_text(encoding="utf-8"))
    return [entry for entry in judged if entry.get("demo")]


def _print_hits(question: str, answer: str, hits: tuple[Hit, ...]) -> None:
    """Print the expected answer, the first hit with its text, and a line for each further hit."""
    say(f"Question:  {question}")
    say(textwrap.fill(f"Expected:  {' '.join(answer.split())}", 96, subsequent_indent=" " * 11))
    say()
    for number, hit in enumerate(hits, start=1):
        if number == 1:
            print_hit(hit)
        else:
            excerpt = build_excerpt(hit.text, question, _LINE_CHARACTERS, language=hit.language)
            say(f"{number}. {format_headline(hit)}\n   │ {excerpt}")
    say()


def _print_headline(text: str, *, as_json: bool) -> None:
    if not as_json:
        say(f"\n── {text} " + "─" * (70 - len(text)))


def _print_next_steps(elapsed: float, *, has_done_nothing: bool) -> None:
    done = "Nothing to do" if has_done_nothing else "Done"
    say(
        f"{done}, in {format_seconds(elapsed)}. The servers keep running. What to try next:\n"
        '  rag-assets search demo "who may approve a rollback?"\n'
        "  rag-assets documents demo            the status of each document\n"
        "  rag-assets tenants add mine --source ~/notes && rag-assets sync mine\n"
        "  rag-assets up                        Dagster's UI and daemon: edits are indexed\n"
        "  rag-assets down                      stop everything\n"
        "(unless the environment is activated, rag-assets is"
        f" {find_program_path(Path(sys.prefix), Path.cwd())})"
    )


def find_program_path(environment: Path, folder: Path) -> Path:
    """Return the path of an environment's program, relative to `folder` if it is inside."""
    program = environment / "bin" / "rag-assets"
    return program.relative_to(folder) if program.is_relative_to(folder) else program


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document with the results of its stages; None for a missing result."""

    document: Document
    parsed: ParsedText | None = None
    chunks: ChunkSetRow | None = None
    chunker: str | None = None

    @property
    def suffix(self) -> str:
        """Return the suffix of the document's file name, in lower case."""
        return PurePosixPath(self.document.uri).suffix.lower()

    @property
    def name(self) -> str:
        """Return the document's file name."""
        return PurePosixPath(self.document.uri).name

    @property
    def token_counts(self) -> list[int]:
        """Return the number of tokens of each chunk; empty if the document has no chunks yet."""
        return [chunk.token_count for chunk in self.chunks.chunks] if self.chunks else []


def summarize_documents(ctx: TenantContext) -> list[DocumentSummary]:
    """Return a summary of each document of a small tenant."""
    from rag_assets.pipeline.slices import find_parsed_documents

    documents = ctx.catalog.documents.all(ctx.ref.id)
    keys = {document.document_id: ctx.parse_key(document) for document in documents}
    texts = ctx.lake.parsed(set(keys.values()))
    ready = {item.document.document_id: item for item in find_parsed_documents(ctx, documents)}
    sets = ctx.lake.chunk_sets({item.chunk_set_key for item in ready.values()})

    def summarize(document: Document) -> DocumentSummary:
        item = ready.get(document.document_id)
        if item is None:
            return DocumentSummary(document)
        return DocumentSummary(
            document,
            texts[keys[document.document_id]].parsed,
            sets.get(item.chunk_set_key),
            ctx.chunk_parameters(document, item.media_type).kind.name,
        )

    return [summarize(document) for document in documents]


def count_by_type(summaries: Iterable[DocumentSummary]) -> list[tuple[str, ...]]:
    """Count documents, sizes, contents and chunks by file type.

    Returns:
        Rows of type, documents, size, contents, chunkers, chunks, and tokens per chunk.
    """
    groups: dict[str, list[DocumentSummary]] = {}
    for item in summaries:
        groups.setdefault(item.suffix, []).append(item)
    return [_build_type_row(suffix, group) for suffix, group in sorted(groups.items())]


def _build_type_row(suffix: str, group: Sequence[DocumentSummary]) -> tuple[str, ...]:
    tokens = sorted(count for item in group for count in item.token_counts)
    return (
        suffix,
        str(len(group)),
        _format_size(sum(item.document.facts.size for item in group)),
        describe_contents([item.parsed for item in group if item.parsed]),
        ", ".join(sorted({item.chunker for item in group if item.chunker})),
        f"{len(tokens):,}",
        f"{tokens[0]} to {tokens[-1]}" if tokens else "",
    )


def describe_contents(parsed: Iterable[ParsedText]) -> str:
    """Describe the numbers of pages, slides, sheets and blocks in parsed texts."""
    counts: Counter[str] = Counter()
    for text in parsed:
        counts[_PART_NAMES.get(text.media_type, "page")] += text.pages or 0
        counts.update(block.kind for block in text.blocks)
    shown_keys = ("page", "slide", "sheet", "row", "heading", "table", "code")
    counted = [
        format_count(counts[k], "code block" if k == "code" else k) for k in shown_keys if counts[k]
    ]
    return ", ".join(counted) or format_count(counts["paragraph"], "paragraph")


def describe_stages(
    summaries: Sequence[DocumentSummary], serving: Generation | None, alias: str
) -> Mapping[str, list[str]]:
    """Return lines that describe the result of each stage, by name of the stage.

    Args:
        alias: name of the serving index in Elasticsearch.
    """
    return {
        "raw_documents": _describe_documents(summaries),
        "parsed_text": _describe_parsing(summaries),
        "chunks": _describe_chunks(summaries),
        "embeddings": _describe_vectors(summaries, serving),
        "search_index": _describe_index(summaries, serving, alias),
    }


def _describe_documents(summaries: Sequence[DocumentSummary]) -> list[str]:
    kinds = len({item.suffix for item in summaries})
    size = _format_size(sum(item.document.facts.size for item in summaries))
    contents = Counter(item.document.content_sha256 for item in summaries)
    copies = sum(contents.values()) - len(contents)
    lines = [f"{format_count(len(summaries), 'document')} of {format_count(kinds, 'type')}, {size}"]
    if copies:
        lines.append(
            f"{format_count(copies, 'exact copy', 'exact copies')}: parsed and embedded once"
        )
    return lines


def _describe_parsing(summaries: Sequence[DocumentSummary]) -> list[str]:
    texts = [item.parsed for item in summaries if item.parsed]
    lines = [f"{format_count(len(texts), 'text')}: {describe_contents(texts)}"]
    lines += [
        f"{item.name}: {format_count(item.parsed.ocr_pages, 'scanned page')} read by OCR"
        for item in summaries
        if item.parsed and item.parsed.ocr_pages
    ]
    lines += [
        f"{item.name}: {format_count(len(item.parsed.masked), 'credential')} masked:"
        f" {_format_rules(item.parsed)}"
        for item in summaries
        if item.parsed and item.parsed.masked
    ]
    lines += [f"{i.name}: {note}" for i in summaries if i.parsed for note in i.parsed.notes]
    failed = [item for item in summaries if item.document.status == "FAILED"]
    return lines + [f"{item.name} failed: {item.document.error_message}" for item in failed]


def _format_rules(parsed: ParsedText) -> str:
    from rag_assets.pipeline.chunking import map_lines_by_rule

    return ", ".join(
        f"{rule} (line {', '.join(map(str, lines))})"
        for rule, lines in sorted(map_lines_by_rule(parsed).items())
    )


def _describe_chunks(summaries: Sequence[DocumentSummary]) -> list[str]:
    tokens = sorted(count for item in summaries for count in item.token_counts)
    lines = [format_count(len(tokens), "chunk")]
    if tokens:
        lines[0] += f" of {tokens[0]} to {tokens[-1]} tokens, median {median(tokens):.0f}"
        lines.append(f"{draw_histogram(tokens)}  by length")
    return lines + [
        f"{item.name}: {format_count(len(item.chunks.dropped), 'chunk')} dropped for a credential:"
        f" {', '.join(sorted({rule for row in item.chunks.dropped for rule in row.rules}))}"
        for item in summaries
        if item.chunks and item.chunks.dropped
    ]


def _describe_vectors(
    summaries: Sequence[DocumentSummary], serving: Generation | None
) -> list[str]:
    hashes = [c.text_sha256 for item in summaries if item.chunks for c in item.chunks.chunks]
    if serving is None:
        return ["none yet"]
    shared = len(hashes) - len(set(hashes))
    lines = [f"{format_count(len(set(hashes)), 'vector')} of {serving.dimensions} dimensions"]
    if shared:
        lines.append(f"{format_count(shared, 'chunk')} share the vector of an equal text")
    return lines


def _describe_index(
    summaries: Sequence[DocumentSummary], serving: Generation | None, alias: str
) -> list[str]:
    if serving is None:
        return ["none yet"]
    entries = format_count(sum(item.document.chunk_count for item in summaries), "entry", "entries")
    documents = format_count(sum(bool(item.document.chunk_count) for item in summaries), "document")
    return [f"{entries} of {documents}, generation {serving.number}, alias {alias}"]


def draw_histogram(lengths: Sequence[int]) -> str:
    """Draw how often each length occurs, as a row of bars from 0 to the maximum."""
    width = max(lengths) + 1
    buckets = Counter(length * _HISTOGRAM_BARS // width for length in lengths)
    most = max(buckets.values())
    return "".join(
        _BARS[-(-buckets[at] * (len(_BARS) - 1) // most)] for at in range(_HISTOGRAM_BARS)
    )


def _format_size(size: int) -> str:
    return f"{size / 1000:,.0f} kB"
