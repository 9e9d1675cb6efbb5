"""A tenant's judged questions in the catalog, and synthetic questions from its documents.

Synthetic questions are generated from headings of documents and the text below them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rag_assets.common.batches import batched
from rag_assets.common.hashing import compute_key
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.pipeline.context import TenantContext
from rag_assets.privacy.masker import Masker, get_masker
from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.quality.yaml_files import to_judgement_mapping
from rag_assets.storage.catalog.builds.judgements import NamedDocument, Others, StoredQuestion
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.model import Document

Documents = Mapping[str, Sequence[NamedDocument]]
"""By each path of a judgement, the present documents that the path refers to."""


def read_questions(catalog: Catalog, tenant_id: str) -> list[JudgedQuestion]:
    """Return a tenant's judged questions; questions that people judged come first."""
    return [_to_judged_question(stored) for stored in catalog.judgements.all(tenant_id)]


def store_questions(
    catalog: Catalog,
    ref: TenantRef,
    questions: Iterable[JudgedQuestion],
    *,
    others: Others = "keep",
) -> int:
    """Store questions by id, in one transaction; return how many other questions were deleted."""
    return catalog.judgements.store(ref, map(_to_stored_question, questions), others=others)


def find_judged_documents(
    catalog: Catalog, tenant_id: str, questions: Iterable[JudgedQuestion]
) -> Documents:
    """Return the present documents that judgements refer to, by the path in the judgement.

    A path is a uri, a document id or a record id.
    """
    paths = {judgement.path for question in questions for judgement in question.relevant}
    return catalog.judgements.find_named_documents(tenant_id, paths)


def limit_judgements(
    questions: Iterable[JudgedQuestion], documents: Documents, kept: Container[str] | None = None
) -> list[JudgedQuestion]:
    """Return the questions; drop judgements of documents that are absent or not in `kept`."""
    names = {
        path: frozenset(
            name
            for named in document
            if kept is None or named.document_id in kept
            for name in (named.document_id, named.uri)
        )
        for path, document in documents.items()
    }
    return [
        replace(
            question,
            relevant=tuple(
                replace(judgement, names=judged_names)
                for judgement in question.relevant
                if (judged_names := names.get(judgement.path))
            ),
        )
        for question in questions
    ]


def _to_stored_question(question: JudgedQuestion) -> StoredQuestion:
    return StoredQuestion(
        question.id,
        question.question,
        question.kind,
        [to_judgement_mapping(judgement) for judgement in question.relevant],
        sorted(question.pool),
        question.relevant_from,
        question.synthetic,
    )


def _to_judged_question(question: StoredQuestion) -> JudgedQuestion:
    return JudgedQuestion(
        question.question_id,
        question.kind,
        question.question,
        tuple(Judgement(**judgement) for judgement in question.judgements),
        frozenset(question.pool),
        question.relevant_from,
        question.synthetic,
    )


KIND = "heading"
_READ_AT_ONCE = 50
_QUOTED_WORDS = 8
_MIN_WORDS = 5
_MIN_LETTERS = 3
_PROSE = frozenset({"paragraph", "list"})
_ID_DIGITS = 12


def propose_questions(ctx: TenantContext, count: int) -> list[JudgedQuestion]:
    """Return at most `count` questions, spread over the documents; the result is deterministic."""
    documents = sorted(
        (
            document
            for document in ctx.catalog.documents.all(ctx.ref.id)
            if document.status == "READY"
        ),
        # The id is a hash of the document's origin, so this order is fixed and has no pattern.
        key=lambda document: document.document_id,
    )
    if not documents or not count:
        return []
    per_document = -(-count // len(documents))
    masker = get_masker(ctx.settings.local)
    questions: dict[str, JudgedQuestion] = {}
    for question in _iter_questions(ctx, documents, per_document, masker):
        questions.setdefault(question.question, question)
        if len(questions) == count:
            break
    return list(questions.values())


def _iter_questions(
    ctx: TenantContext, documents: Sequence[Document], per_document: int, masker: Masker
) -> Iterator[JudgedQuestion]:
    for batch in batched(documents, _READ_AT_ONCE):
        keys = {document.document_id: ctx.parse_key(document) for document in batch}
        texts = ctx.lake.parsed(set(keys.values()))
        for document in batch:
            row = texts.get(keys[document.document_id])
            if row is not None:
                yield from _propose_from_document(document, row.parsed, per_document, masker)


def _propose_from_document(
    document: Document, parsed: ParsedText, per_document: int, masker: Masker
) -> Iterator[JudgedQuestion]:
    title = document.title or parsed.title
    count = 0
    for headings, quote in _iter_passages(parsed):
        question = _format_question(title, headings)
        if count == per_document:
            return
        if any(map(masker.holds_credential, (document.uri, question, quote))):
            continue
        count += 1
        key = compute_key("question", document.uri, headings)[:_ID_DIGITS]
        relevant = (Judgement(document.uri, quote),)
        yield JudgedQuestion(f"{KIND}-{key}", KIND, question, relevant, synthetic=True)


def _iter_passages(parsed: ParsedText) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the headings that are followed by prose, with its first words; deepest first."""
    passages: dict[tuple[str, ...], str] = {}
    for block in parsed.blocks:
        headings = block.heading_path
        if block.kind in _PROSE and headings and headings not in passages:
            quote = _find_quote(parsed, block)
            if quote and sum(map(str.isalpha, headings[-1])) >= _MIN_LETTERS:
                passages[headings] = quote
    yield from sorted(passages.items(), key=lambda item: -len(item[0]))


def _find_quote(parsed: ParsedText, block: Block) -> str | None:
    """Return the first words of a block; None if they are too few or a credential is masked."""
    if any(span.start < block.end and block.start < span.end for span in parsed.masked):
        return None
    words = parsed.text[block.start : block.end].split(maxsplit=_QUOTED_WORDS)[:_QUOTED_WORDS]
    return " ".join(words) if len(words) >= _MIN_WORDS else None


def _format_question(title: str | None, headings: tuple[str, ...]) -> str:
    """Return a question made from a title and headings, as a user might type it."""
    last = " ".join(headings[-1].split())
    if last.endswith("?"):
        return last
    above = " ".join((title or headings[0]).split())
    return last if above == last else f"{above}: {last}"
