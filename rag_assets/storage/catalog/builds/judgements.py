"""Judged questions, the documents that their judgements name, and the vectors of the questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    matches_any,
    matches_document,
    read_row,
)
from rag_assets.storage.catalog.documents.status import is_same_document
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    json_column,
    metadata,
    now_column,
    source_records,
    tenant_column,
)

judged_questions = sa.Table(
    "judged_questions",
    metadata,
    tenant_column(),
    sa.Column("question_id", sa.Text, primary_key=True),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, server_default=""),
    # The lowest grade that counts as found.
    sa.Column("relevant_from", sa.SmallInteger, nullable=False),
    # Made from a document's headings, and not judged by a person.
    sa.Column("synthetic", sa.Boolean, nullable=False, server_default=sa.text("false")),
    json_column("judgements", "[]"),
    # Hashes of the passages that were read for the question.
    sa.Column("pool", sa.ARRAY(sa.Text), nullable=False, server_default="{}"),
    now_column("judged_at"),
)
"""Questions with judged passages, for measurements of search quality."""

question_vectors = sa.Table(
    "question_vectors",
    metadata,
    tenant_column(),
    sa.Column("embedder_id", sa.Text, primary_key=True),
    sa.Column("question_sha256", sa.Text, primary_key=True),
    # Packed little-endian float32.
    sa.Column("vector", sa.LargeBinary, nullable=False),
    now_column("embedded_at"),
)
"""Embeddings of judged questions."""


_BATCH_QUESTIONS = 1_000
_MAX_NAMES_PER_QUERY = 20_000
"""Maximum number of names per query. Each query reads all rows, because a name may be in three
columns."""

Others: TypeAlias = Literal["keep", "replace judged", "replace synthetic"]
"""Whether existing questions outside the new set are all kept, or the judged or the synthetic
questions among them are deleted."""


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """One row of `judged_questions`.

    Attributes:
        judgements: mappings with path, quote and grade.
    """

    question_id: str
    question: str
    kind: str
    judgements: Sequence[Mapping[str, Any]]
    pool: Sequence[str]
    relevant_from: int
    synthetic: bool


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document to which a judgement refers, by its uri, its id, or the id of its record."""

    document_id: str
    uri: str


class JudgementTable(CatalogQueries):
    """Stores and finds judged questions, in `judged_questions`."""

    def all(self, tenant_id: str) -> list[StoredQuestion]:
        """Return a tenant's questions: judged, then synthetic questions, each sorted by id."""
        query = (
            sa.select(judged_questions)
            .where(judged_questions.c.tenant == tenant_id)
            .order_by(judged_questions.c.synthetic, judged_questions.c.question_id)
        )
        return [read_row(StoredQuestion, row) for row in self._database.fetch_rows(query)]

    def count_by_kind(self, tenant_id: str) -> dict[bool, int]:
        """Return how many questions are synthetic (True) and judged (False); zeros are left out."""
        columns = judged_questions.c
        query = (
            sa.select(columns.synthetic, sa.func.count())
            .where(columns.tenant == tenant_id)
            .group_by(columns.synthetic)
        )
        return {synthetic: int(count) for synthetic, count in self._database.fetch_rows(query)}

    def tenants(self) -> set[str]:
        """Return the tenants that have questions."""
        return set(self._database.fetch_values(sa.select(judged_questions.c.tenant).distinct()))

    def store(
        self, ref: TenantRef, questions: Iterable[StoredQuestion], *, others: Others = "keep"
    ) -> int:
        """Store questions by id, and delete others if requested; return how many were deleted.

        Args:
            others: whether to keep all other questions, or to delete the other synthetic or judged
                ones.
        """
        new = sorted(questions, key=lambda question: question.question_id)
        with self._database.begin_tenant(ref) as connection:
            deleted = 0
            if others != "keep":
                columns = judged_questions.c
                is_other = (
                    columns.tenant == ref.id,
                    columns.synthetic == (others == "replace synthetic"),
                    ~matches_any(
                        columns.question_id,
                        [stored_question.question_id for stored_question in new],
                    ),
                )
                deleted = connection.execute(sa.delete(judged_questions).where(*is_other)).rowcount
            for batch in batched(new, _BATCH_QUESTIONS):
                values = upsert(judged_questions).values(
                    [
                        {
                            "tenant": ref.id,
                            **asdict(stored_question),
                            "judgements": [
                                dict(judgement) for judgement in stored_question.judgements
                            ],
                            "pool": list(stored_question.pool),
                        }
                        for stored_question in batch
                    ]
                )
                changed = {
                    column.name: values.excluded[column.name]
                    for column in judged_questions.c
                    if not column.primary_key and column.name != "judged_at"
                }
                connection.execute(
                    values.on_conflict_do_update(
                        index_elements=["tenant", "question_id"],
                        set_={**changed, "judged_at": sa.func.now()},
                    )
                )
            connection.execute(_build_unused_vectors_deletion(ref))
        return deleted

    def find_named_documents(
        self, tenant_id: str, names: Collection[str]
    ) -> dict[str, list[NamedDocument]]:
        """Return the documents with these names, by name.

        A name is a uri, a document id or a record id. Deleted documents are left out.
        """
        by_name: dict[str, list[NamedDocument]] = {}
        for batch in batched(names, _MAX_NAMES_PER_QUERY):
            for row in self._database.fetch_rows(_select_named(tenant_id, batch)):
                document = NamedDocument(row.document_id, row.uri)
                for name in {row.document_id, row.uri, row.source_id} & set(batch):
                    by_name.setdefault(name, []).append(document)
        return by_name

    def find_in_both(
        self, tenant_id: str, generation: int, other_generation: int, document_ids: Collection[str]
    ) -> set[str]:
        """Return which of these documents two generations contain in the same version."""
        other_index = document_index.alias()
        query = (
            sa.select(document_index.c.document_id)
            .join(
                other_index,
                matches_document(other_index.c, document_index.c)
                & (other_index.c.document_key == document_index.c.document_key),
            )
            .join(documents, is_same_document())
            .where(
                document_index.c.tenant == tenant_id,
                document_index.c.generation == generation,
                other_index.c.generation == other_generation,
                document_index.c.indexed_key.is_not(None),
                other_index.c.indexed_key.is_not(None),
                documents.c.status != "DELETED",
            )
        )
        common_ids: set[str] = set()
        for batch in batched(document_ids, _MAX_NAMES_PER_QUERY):
            common_ids |= set(
                self._database.fetch_values(
                    query.where(matches_any(document_index.c.document_id, batch))
                )
            )
        return common_ids


def forget_judgements(
    connection: sa.Connection, ref: TenantRef, document_ids: Sequence[str]
) -> int:
    """Delete the judgements that name erased documents; return the number of judgements.

    A question without remaining judgements is deleted. A synthetic question is deleted in any case,
    because its text is a heading of the document.

    Args:
        connection: a connection in the transaction that erases the documents; it has not changed
            the documents' rows yet.
    """
    mine = judged_questions.c.tenant == ref.id
    stored = [
        read_row(StoredQuestion, row)
        for row in connection.execute(sa.select(judged_questions).where(mine))
    ]
    if not stored:
        return 0
    names: set[str] = set()
    for batch in batched(document_ids, _MAX_NAMES_PER_QUERY):
        rows = connection.execute(
            _select_names(ref.id, matches_any(documents.c.document_id, batch))
        )
        names |= {name for row in rows for name in row if name is not None}
    deleted = 0
    for question in stored:
        remaining = [
            judgement for judgement in question.judgements if judgement["path"] not in names
        ]
        if len(remaining) == len(question.judgements):
            continue
        deleted += len(question.judgements) - len(remaining)
        is_question = (mine, judged_questions.c.question_id == question.question_id)
        if remaining and not question.synthetic:
            connection.execute(
                sa.update(judged_questions).where(*is_question).values(judgements=remaining)
            )
        else:
            connection.execute(sa.delete(judged_questions).where(*is_question))
    connection.execute(_build_unused_vectors_deletion(ref))
    return deleted


def _build_unused_vectors_deletion(ref: TenantRef) -> Any:
    """Return the statement that deletes the vectors of questions that no longer exist."""
    hashed = sa.func.encode(
        sa.func.sha256(sa.func.convert_to(judged_questions.c.question, "UTF8")), "hex"
    )
    present = sa.exists().where(
        judged_questions.c.tenant == question_vectors.c.tenant,
        hashed == question_vectors.c.question_sha256,
    )
    return sa.delete(question_vectors).where(question_vectors.c.tenant == ref.id, ~present)


def _select_named(tenant_id: str, names: Sequence[str]) -> sa.Select[Any]:
    named = sa.or_(
        matches_any(documents.c.document_id, names),
        matches_any(documents.c.uri, names),
        matches_any(source_records.c.source_id, names),
    )
    present = _select_names(tenant_id, documents.c.status != "DELETED", named)
    return present.order_by(documents.c.document_id)


def _select_names(tenant_id: str, *conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Return the query for the names by which judgements refer to documents: id, uri, record id."""
    return (
        sa.select(documents.c.document_id, documents.c.uri, source_records.c.source_id)
        .outerjoin(source_records, matches_document(source_records.c, documents.c))
        .where(documents.c.tenant == tenant_id, *conditions)
    )


class QuestionVectorTable(CatalogQueries):
    """Stores and finds the vectors of judged questions, in `question_vectors`."""

    def find(self, tenant_id: str, embedder_id: str, hashes: Collection[str]) -> dict[str, bytes]:
        """Return the packed vectors that an embedder made of these questions, by question hash."""
        query = sa.select(question_vectors.c.question_sha256, question_vectors.c.vector).where(
            question_vectors.c.tenant == tenant_id,
            question_vectors.c.embedder_id == embedder_id,
            matches_any(question_vectors.c.question_sha256, hashes),
        )
        return {key: bytes(vector) for key, vector in self._database.fetch_rows(query)}

    def keep(self, ref: TenantRef, embedder_id: str, vectors: Mapping[str, bytes]) -> None:
        """Store packed vectors by question hash; vectors that are already stored stay."""
        rows = [
            {
                "tenant": ref.id,
                "embedder_id": embedder_id,
                "question_sha256": key,
                "vector": vectors[key],
            }
            for key in sorted(vectors)
        ]
        if rows:
            self._database.write(
                ref, upsert(question_vectors).values(rows).on_conflict_do_nothing()
            )

    def keep_only(self, ref: TenantRef, embedder_ids: Collection[str]) -> None:
        """Delete the vectors of all embedders except these."""
        is_other = question_vectors.c.embedder_id.not_in(list(embedder_ids))
        self._database.delete(ref, question_vectors, is_other)
