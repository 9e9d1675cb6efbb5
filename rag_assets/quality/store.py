"""A tenant's judged questions in the catalog."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace

from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.quality.yaml_files import to_judgement_mapping
from rag_assets.storage.catalog.builds.judgements import NamedDocument, Others, StoredQuestion
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef

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
    questions: Iterable[JudgedQuestion],
    documents: Documents,
    kept: Container[str] | None = None,
) -> list[JudgedQuestion]:
    """Return the questions with only their judgements of documents that count.

    By default, all present documents count.
    """
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
                replace(judgement, names=its)
                for judgement in question.relevant
                if (its := names.get(judgement.path))
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
