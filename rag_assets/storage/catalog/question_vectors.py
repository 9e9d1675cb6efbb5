"""The vectors of judged questions, kept so that each is paid for only once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.judgement_tables import question_vectors


class QuestionVectorTable:
    """Queries on `question_vectors`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, tenant_id: str, embedder_id: str, hashes: Collection[str]) -> dict[str, bytes]:
        """Return the packed vectors of these questions by one embedder, by their hash."""
        query = select(question_vectors.c.question_sha256, question_vectors.c.vector).where(
            question_vectors.c.tenant == tenant_id,
            question_vectors.c.embedder_id == embedder_id,
            among(question_vectors.c.question_sha256, hashes),
        )
        with self._database.begin() as connection:
            return {key: bytes(vector) for key, vector in connection.execute(query)}

    def keep(self, ref: TenantRef, embedder_id: str, vectors: Mapping[str, bytes]) -> None:
        """Store packed vectors of questions by their hash; existing vectors stay."""
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
            with self._database.begin_for(ref) as connection:
                connection.execute(upsert(question_vectors).values(rows).on_conflict_do_nothing())

    def keep_only(self, ref: TenantRef, embedder_ids: Collection[str]) -> None:
        """Delete the vectors of all other embedders, which have no build left."""
        with self._database.begin_for(ref) as connection:
            connection.execute(
                delete(question_vectors).where(
                    question_vectors.c.tenant == ref.id,
                    question_vectors.c.embedder_id.not_in(list(embedder_ids)),
                )
            )
